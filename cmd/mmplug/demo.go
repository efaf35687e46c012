package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/examples/handbook"
	"github.com/mapmatched/mmplug/graphbuild"
	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

func newDemo(std stdio) *cobra.Command {
	var keep, html string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a conversation on a small handbook: needs nothing, shows everything",
		Long: `Index the handbook that is built into this program, play a conversation of six
turns with pronouns, an ambiguous follow-up and a change of topic, and print for
every turn what searching it alone finds and what the decoder finds, then why.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), std, keep, html, asJSON)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "write the index to this directory and keep it")
	cmd.Flags().StringVar(&html, "html", "", "write the trace as an HTML page to this file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer after every turn as JSON")
	return cmd
}

func demo(ctx context.Context, std stdio, keep, html string, asJSON bool) error {
	docs, err := fs.Sub(handbook.Docs, "docs")
	if err != nil {
		return err
	}
	dir := keep
	if dir == "" {
		temp, err := os.MkdirTemp("", "mmplug-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp) //nolint:errcheck // the system clears it otherwise
		dir = filepath.Join(temp, "index")
	}
	used, err := usePolicy(policy.Plain)
	if err != nil {
		return err
	}
	corpus, err := buildIndex(ctx, std, []graphbuild.Root{{FS: docs}}, &graphbuild.CorpusOptions{}, indexing{usedPolicy: used}, "handbook", dir)
	if err != nil {
		return err
	}
	c, err := converse(ctx, std, conversationFlags{index: dir, html: html, policy: policy.Conversational})
	if err != nil {
		return err
	}
	defer c.close()
	if !asJSON {
		_, err := fmt.Fprintf(std.out, "A handbook of %d pages in %d chunks with %d edges, all inside this program.\n\n",
			len(corpus.Documents), len(corpus.Chunks), len(corpus.Edges))
		if err != nil {
			return err
		}
	}
	var turns []*turn
	alone, together := 0, 0
	for _, scripted := range handbook.Conversation {
		a, err := c.ask(ctx, scripted.Question)
		if err != nil {
			return err
		}
		r := a.Result
		t, err := c.turn(ctx, scripted.Question, a)
		if err != nil {
			return err
		}
		turns = append(turns, t)
		best := a.Alone
		if best == nil {
			return fmt.Errorf("the demo question %q finds nothing", scripted.Question)
		}
		pointwiseRight, decodedRight := isAbout(*best, scripted), isAbout(r.Decoded().Candidate, scripted)
		alone, together = alone+toInt(pointwiseRight), together+toInt(decodedRight)
		if asJSON {
			continue
		}
		if err := c.printDemo(scripted, r, *best, pointwiseRight, decodedRight); err != nil {
			return err
		}
	}
	if err := c.writeHTML(ctx); err != nil {
		return err
	}
	if asJSON {
		return writeJSON(std.out, map[string]any{"turns": turns, "right_pointwise": alone, "right_decoded": together})
	}
	return c.printDemoEnd(alone, together, keep)
}

// isAbout reports whether a candidate is the section that answers a turn.
func isAbout(c mapmatched.Candidate, t handbook.Turn) bool {
	section, _ := c.Metadata["section"].(string)
	return c.Metadata["document"] == t.Page && (section == t.Heading || strings.HasSuffix(section, " > "+t.Heading))
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *conversation) printDemo(t handbook.Turn, r *mapmatched.Result, best mapmatched.Candidate, pointwiseRight, decodedRight bool) error {
	s := styleFor(c.std.out)
	mark := func(right bool) string {
		if right {
			return s.green("right")
		}
		return s.red("wrong")
	}
	_, err := fmt.Fprintf(c.std.out, "%s\n    searched alone  %s  %s\n    decoded         %s  %s\n      %s\n",
		s.bold(fmt.Sprintf("[%d] %s", r.Turn+1, t.Question)),
		mark(pointwiseRight), best.ChunkID, mark(decodedRight), r.ChunkID,
		s.dim(snippet(withoutHeading(r.Decoded().Text), lineWidth(c.std.out)-8)))
	return err
}

// withoutHeading drops a first line that is a Markdown heading.
func withoutHeading(text string) string {
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(first, "#") {
		return rest
	}
	return text
}

func (c *conversation) printDemoEnd(alone, together int, keep string) error {
	var b strings.Builder
	n := len(handbook.Conversation)
	fmt.Fprintf(&b, "\nSearched alone, %d of %d turns find the right section; decoded, %d of %d.\n\nWhy: the trace, in which turns count from 0 and distances are what the moves cost.\n\n%s\n\n",
		alone, n, together, n, c.session().Trace().Text())
	if c.flags.html != "" {
		fmt.Fprintf(&b, "The same as a picture: %s\n", c.flags.html)
	} else {
		b.WriteString("The same as a picture:   mmplug demo --html demo.html\n")
	}
	if keep != "" {
		fmt.Fprintf(&b, "Ask the handbook:        mmplug chat --index %s\n", keep)
	}
	b.WriteString("Your own documents:      mmplug index DIR --out IDX, then mmplug chat --index IDX\n")
	_, err := io.WriteString(c.std.out, b.String())
	return err
}
