package graphbuild

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ClusterQuality says how well clusters agree with labels. Only chunks with a
// label count.
type ClusterQuality struct {
	Chunks   int `json:"chunks"`   // with a label
	Clusters int `json:"clusters"` // with such a chunk
	Labels   int `json:"labels"`

	// NMI is the normalised mutual information, in [0, 1]: the mutual
	// information of clusters and labels divided by the arithmetic mean of
	// their entropies (Strehl & Ghosh 2002 use the geometric one). It is 1 when
	// there is one cluster and one label, and 0 when only one of them is one.
	NMI float64 `json:"nmi"`

	// The B-cubed measures (Bagga & Baldwin 1998), in (0, 1]. Precision is the
	// mean, over the chunks, of the share of a chunk's cluster that has its
	// label; recall is that of the share of its label that is in its cluster; F
	// is the harmonic mean of the two.
	BCubedPrecision float64 `json:"bcubed_precision"`
	BCubedRecall    float64 `json:"bcubed_recall"`
	BCubedF         float64 `json:"bcubed_f"`
}

// MeasureClusters compares clusters with the labels of their chunks. A label of
// a chunk that is in no cluster, and no labels at all, are errors.
func MeasureClusters(clusters []Cluster, labels map[string]string) (*ClusterQuality, error) {
	if len(labels) == 0 {
		return nil, errors.New("there are no labels to compare the clusters with")
	}
	names := make([]string, 0, len(labels))
	for _, label := range labels {
		names = append(names, label)
	}
	names = uniqueStrings(names)
	q := &ClusterQuality{Labels: len(names)}
	ofLabel := make([]int, len(names)) // chunks
	var shared [][]int                 // chunks of each cluster by label
	for _, c := range clusters {
		row := make([]int, len(names))
		size := 0
		for _, id := range c.Members {
			if label, labelled := labels[id]; labelled {
				at, _ := slices.BinarySearch(names, label)
				row[at]++
				ofLabel[at]++
				size++
			}
		}
		if size > 0 {
			q.Chunks += size
			shared = append(shared, row)
		}
	}
	if q.Chunks != len(labels) {
		return nil, unclustered(clusters, labels)
	}
	q.Clusters = len(shared)

	total := float64(q.Chunks)
	entropy := func(counts []int) float64 {
		h := 0.0
		for _, n := range counts {
			if n > 0 {
				p := float64(n) / total
				h -= float64(p * math.Log(p))
			}
		}
		return h
	}
	sizes := make([]int, len(shared))
	information := 0.0
	for i, row := range shared {
		for _, n := range row {
			sizes[i] += n
		}
		for at, n := range row {
			if n == 0 {
				continue
			}
			both, cluster, label := float64(n), float64(sizes[i]), float64(ofLabel[at])
			information += float64(both / total * math.Log(both*total/(cluster*label)))
			q.BCubedPrecision += float64(both * both / cluster)
			q.BCubedRecall += float64(both * both / label)
		}
	}
	switch mean := (entropy(sizes) + entropy(ofLabel)) / 2; {
	case q.Clusters == 1 && q.Labels == 1:
		q.NMI = 1
	case q.Clusters > 1 && q.Labels > 1:
		q.NMI = min(max(information/mean, 0), 1)
	}
	q.BCubedPrecision /= total
	q.BCubedRecall /= total
	q.BCubedF = 2 * q.BCubedPrecision * q.BCubedRecall / (q.BCubedPrecision + q.BCubedRecall)
	return q, nil
}

// unclustered names a chunk with a label that is in no cluster.
func unclustered(clusters []Cluster, labels map[string]string) error {
	in := map[string]bool{}
	for _, c := range clusters {
		for _, id := range c.Members {
			in[id] = true
		}
	}
	for _, id := range sortedKeys(labels) {
		if !in[id] {
			return fmt.Errorf("chunk %q has the label %q and is in no cluster; label clustered chunks only", clipText(id), clipText(labels[id]))
		}
	}
	return errors.New("a chunk is in two clusters")
}
