package graphbuild

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/mapmatched/mmplug/mapmatched"
)

// WriteJSON writes the clusters as JSON, one cluster a line. The same clusters
// have the same bytes.
func (c *Clustering) WriteJSON(w io.Writer) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	head := *c
	head.Clusters = []Cluster{}
	if err := enc.Encode(&head); err != nil {
		return err
	}
	b.Truncate(b.Len() - len("]}\n"))
	for i := range c.Clusters {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		if err := enc.Encode(&c.Clusters[i]); err != nil {
			return err
		}
		b.Truncate(b.Len() - len("\n"))
		if b.Len() > 1<<20 {
			if _, err := b.WriteTo(w); err != nil {
				return err
			}
		}
	}
	b.WriteString("]}\n")
	_, err := b.WriteTo(w)
	return err
}

// ReadClustering reads what [Clustering.WriteJSON] wrote. Clusters of another
// policy are an error (mapmatched.ErrStaleIndex), and so is anything that
// cannot be right: unknown fields, IDs that are empty or in two places, a medoid
// that is no member, numbers out of range, counts that do not agree.
func ReadClustering(r io.Reader) (*Clustering, error) {
	c := &Clustering{}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("clusters: %w", unexpectedEnd(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("clusters: something follows the JSON value")
	}
	if c.Policy != PolicyClusters {
		return nil, fmt.Errorf("clusters: %w: they were made by %q and this program reads %q: cluster again", mapmatched.ErrStaleIndex, clipText(c.Policy), PolicyClusters)
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	return c, nil
}

func (c *Clustering) validate() error {
	if !(c.Threshold > 0 && c.Threshold <= 2) || c.Dimension < 0 || c.Clusters == nil {
		return fmt.Errorf("threshold %v, dimension %d or the list of clusters is not right; cluster again", c.Threshold, c.Dimension)
	}
	of := map[string]int{}
	for i, k := range c.Clusters {
		if len(k.Members) == 0 {
			return fmt.Errorf("cluster %d has no members", i)
		}
		for _, id := range k.Members {
			if id == "" {
				return fmt.Errorf("cluster %d: %w", i, mapmatched.ErrEmptyChunkID)
			}
			if other, taken := of[id]; taken {
				return fmt.Errorf("chunk %q is in cluster %d and in cluster %d", clipText(id), other, i)
			}
			of[id] = i
		}
		switch {
		case !slices.IsSorted(k.Members) || i > 0 && c.Clusters[i-1].Members[0] >= k.Members[0]:
			return fmt.Errorf("cluster %d: members or clusters are not in order", i)
		case len(k.Centroid) != c.Dimension:
			return fmt.Errorf("cluster %d has a centroid of %d dimensions, want %d", i, len(k.Centroid), c.Dimension)
		case !slices.Contains(k.Members, k.Medoid):
			return fmt.Errorf("cluster %d: the medoid %q is no member", i, clipText(k.Medoid))
		case !(k.Radius >= 0 && k.Radius <= 2):
			return fmt.Errorf("cluster %d has radius %v, want a distance up to 2", i, k.Radius)
		}
		for _, x := range k.Centroid {
			if math.Abs(float64(x)) > 1 {
				return fmt.Errorf("cluster %d: the centroid has the value %v, want a vector of length 1", i, x)
			}
		}
	}
	if len(of) != c.Chunks {
		return fmt.Errorf("there are %d chunks in clusters, want %d", len(of), c.Chunks)
	}
	return nil
}

// ReadLabels reads the labels of chunks: CSV records of a chunk ID and its
// label, with or without the header id,label (or chunk_id,label). Empty IDs and
// labels, a repeated ID and any other number of columns are errors that name
// the line.
func ReadLabels(r io.Reader) (map[string]string, error) {
	records := csvReader(r, ',')
	labels := map[string]string{}
	for first := true; ; first = false {
		record, line, err := readRecord(records)
		if errors.Is(err, io.EOF) {
			return labels, nil
		}
		if err != nil {
			return nil, err
		}
		if len(record) != 2 {
			return nil, fmt.Errorf("line %d: there are %d columns, want a chunk ID and its label", line, len(record))
		}
		id, label := record[0], record[1]
		if first && (id == "id" || id == "chunk_id") && label == "label" {
			continue
		}
		if id == "" {
			return nil, fmt.Errorf("line %d, column 1: %w", line, mapmatched.ErrEmptyChunkID)
		}
		if label == "" {
			return nil, fmt.Errorf("line %d, column 2: the label is empty; leave the line out if chunk %q has none", line, clipText(id))
		}
		if _, known := labels[id]; known {
			return nil, fmt.Errorf("line %d, column 1: chunk %q has a label already", line, clipText(id))
		}
		labels[id] = label
	}
}
