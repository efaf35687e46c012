package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
)

// maxLine is the longest line that chat reads, in bytes.
const maxLine = 1 << 20

func newChat(std stdio) *cobra.Command {
	var flags conversationFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "chat --index IDX | --provider URL",
		Short: "Hold a conversation, one question a line",
		Long: `Read questions from standard input, one a line, and print the passage for each as
it comes. "/trace" prints why each passage was chosen, "/quit" or the end of the
input ends. A question that a store or a service does not answer because it is
away is reported, and the conversation goes on without it; the exit status is
then 1.`,
		Example: `  mmplug chat --index docs.idx
  mmplug chat --provider qdrant://localhost:6334/docs --embed models/minilm
  mmplug chat --index docs.idx --json < questions.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := converse(cmd.Context(), std, flags)
			if err != nil {
				return err
			}
			defer c.close()
			if err := chat(cmd.Context(), c, asJSON); err != nil {
				return err
			}
			return c.writeHTML(cmd.Context())
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer to every question as one line of JSON")
	return cmd
}

// chat answers the lines of standard input until it ends.
func chat(ctx context.Context, c *conversation, asJSON bool) error {
	in := isTerminal(c.std.in)
	out := isTerminal(c.std.out)
	prompt := func() {
		if in && out {
			fmt.Fprint(c.std.out, "> ") //nolint:errcheck // only a prompt
		}
	}
	if in && out {
		fmt.Fprintln(c.std.out, `ask away; "/trace" says why, "/quit" ends`) //nolint:errcheck // only a greeting
	}
	unanswered := 0
	end := func() error {
		if unanswered == 0 {
			return nil
		}
		return fmt.Errorf("%s not answered: ask again when what did not answer is back", count(unanswered, "question was", "questions were"))
	}
	for prompt(); ; prompt() {
		text, err := nextLine(ctx, c.lines())
		if errors.Is(err, io.EOF) {
			if in && out {
				if _, err := fmt.Fprintln(c.std.out); err != nil { // off the line of the prompt
					return err
				}
			}
			return end()
		}
		if err != nil {
			return err
		}
		switch question := asked(text); {
		case question == "":
		case question == "/quit":
			return end()
		case isCommand(question):
			complain(c.std.err, fmt.Errorf("there is no command %s; the commands are /trace and /quit", question))
		case question == "/trace":
			if _, err := fmt.Fprintln(c.std.out, c.session().Trace().Text()); err != nil {
				return err
			}
		default:
			r, err := c.ask(ctx, question)
			if away(err) && ctx.Err() == nil {
				complain(c.std.err, err)
				unanswered++
				continue
			}
			if err != nil {
				return err
			}
			if !asJSON {
				err = c.print(ctx, question, r, 3)
			} else if t, terr := c.turn(ctx, question, r); terr != nil {
				err = terr
			} else {
				enc := json.NewEncoder(c.std.out)
				enc.SetEscapeHTML(false)
				err = enc.Encode(t)
			}
			if err != nil {
				return err
			}
		}
	}
}

// away reports whether an error is of something that may be back later.
func away(err error) bool {
	kind := mapmatched.KindOf(err)
	return kind == mapmatched.KindUnavailable || kind == mapmatched.KindDeadline
}

// isCommand reports whether a line means to be a command that is none.
func isCommand(text string) bool {
	name, slash := strings.CutPrefix(text, "/")
	return slash && name != "trace" && !strings.ContainsFunc(name, func(r rune) bool { return r < 'a' || r > 'z' })
}

// line is a line of input, or why there is none.
type line struct {
	text string
	err  error
}

// lines reads standard input in the background, so that an interrupt ends a
// chat that waits for a line.
func (c *conversation) lines() <-chan line {
	if c.input == nil {
		c.input = make(chan line)
		go func() {
			scanner := bufio.NewScanner(c.std.in)
			scanner.Buffer(nil, maxLine)
			n := 0
			for ; scanner.Scan(); n++ {
				c.input <- line{text: scanner.Text()}
			}
			err := scanner.Err()
			switch {
			case err == nil:
				err = io.EOF
			case errors.Is(err, bufio.ErrTooLong):
				err = fmt.Errorf("standard input: line %d is longer than %d bytes; ask in fewer words", n+1, maxLine)
			default:
				err = cannot("read", "standard input", err)
			}
			c.input <- line{err: err}
		}()
	}
	return c.input
}

func nextLine(ctx context.Context, lines <-chan line) (string, error) {
	select {
	case l := <-lines:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
