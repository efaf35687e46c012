package plugintest

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/plugins"
)

// Result is the outcome of one check. Its status is ok, failed or skipped.
type Result struct {
	Group  string            `json:"group"` // "protocol" or the kind
	Check  string            `json:"check"`
	Status mapmatched.Status `json:"status"`
	Detail string            `json:"detail,omitempty"` // what was wrong, or why it was skipped
}

// Report is the outcome of the suite, ready to be written as JSON.
type Report struct {
	Target  string       `json:"target"`
	Info    plugins.Info `json:"info"` // zero when the plugin did not start
	Results []Result     `json:"results"`
}

// Count returns how many checks ended with a status.
func (r Report) Count(status mapmatched.Status) int {
	n := 0
	for _, result := range r.Results {
		if result.Status == status {
			n++
		}
	}
	return n
}

// OK reports whether checks ran and none failed.
func (r Report) OK() bool {
	return r.Count(mapmatched.StatusOK) > 0 && r.Count(mapmatched.StatusFailed) == 0
}

// WriteText writes the report as a table with a last line that counts.
func (r Report) WriteText(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s: %s %s, protocol %d.%d, %v\n\n", r.Target, r.Info.Name, r.Info.Version, r.Info.Protocol, r.Info.ProtocolMinor, r.Info.Kinds); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, result := range r.Results {
		detail := ""
		if result.Detail != "" {
			detail = "\t" + result.Detail
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%s%s\n", result.Status, result.Group, result.Check, detail); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d ok, %d failed, %d skipped\n", r.Count(mapmatched.StatusOK), r.Count(mapmatched.StatusFailed), r.Count(mapmatched.StatusSkipped))
	return err
}

func (r *Report) add(group, check string, err error) {
	result := Result{Group: group, Check: check, Status: mapmatched.StatusOK}
	switch e := err.(type) { //nolint:errorlint // skip is never wrapped
	case nil:
	case skip:
		result.Status, result.Detail = mapmatched.StatusSkipped, string(e)
	default:
		result.Status, result.Detail = mapmatched.StatusFailed, err.Error()
	}
	r.Results = append(r.Results, result)
}

// skip is the error of a check that does not apply.
type skip string

func (s skip) Error() string { return string(s) }
