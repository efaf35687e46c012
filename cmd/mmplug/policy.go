package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mapmatched/mmplug/mapmatched"
	"github.com/mapmatched/mmplug/policy"
)

func newPolicy(std stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write, check, freeze and compare policies",
		Long: `A policy pins every formula version and parameter that results depend on. It is
a file in YAML, JSON or TOML, or one that is built in (see "mmplug policy list").`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newPolicyInit(std), newPolicyList(std), newPolicyShow(std), newPolicyValidate(std),
		newPolicyFreeze(std), newPolicyVerify(std), newPolicyDiff(std), newPolicySchema(std), newPolicyShadowReport(std),
	)
	return cmd
}

func newPolicyInit(std stdio) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "init [FILE|-]",
		Short: "Write a policy file with every key at its default and a comment at each",
		Long: `Write a policy file with every key at its default. In YAML, and on standard
output, each key has a comment. A file that is there already is not replaced.`,
		Example: "  mmplug policy init team.policy.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "-"
			if len(args) == 1 {
				path = args[0]
			}
			if name == "" {
				name = "unnamed"
				if path != "-" {
					name, _, _ = strings.Cut(filepath.Base(path), ".")
				}
			}
			data, err := newPolicyFile(path, name)
			if err != nil {
				return err
			}
			if path != "-" {
				if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("%s is there already: give another name", path)
				}
			}
			return writeFile(std, path, func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the policy (default: from the file name)")
	return cmd
}

// newPolicyFile is a policy file with the defaults, in the format of its path.
func newPolicyFile(path, name string) ([]byte, error) {
	format := policy.YAML
	if path != "-" {
		var err error
		if format, err = policy.FormatOf(path); err != nil {
			return nil, usageError{fmt.Errorf("%s: %w", path, err)}
		}
	}
	if format == policy.YAML {
		return policy.Template(name)
	}
	p := policy.Default()
	p.Name = name
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p.Encode(format)
}

func newPolicyList(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the policies that are built in",
		RunE: func(*cobra.Command, []string) error {
			var rows [][]string
			list := []map[string]string{}
			for _, name := range policy.Builtins() {
				p, err := policy.Builtin(name)
				if err != nil {
					return err
				}
				rows = append(rows, []string{p.Name, p.Digest(), p.Description})
				list = append(list, map[string]string{"name": p.Name, "digest": p.Digest(), "description": p.Description})
			}
			if asJSON {
				return writeJSON(std.out, map[string]any{"policies": list})
			}
			return table(std.out, []string{"name", "digest", "what"}, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newPolicyShow(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show FILE…|NAME",
		Short: "Print a policy in full, defaults filled in, with its digest",
		Long: `Print a policy in full, defaults filled in, with its digest. Several files give
one policy together. What is printed is a policy file itself.`,
		Example: `  mmplug policy show plain
  mmplug policy show --json team.policy.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := openPolicy(args)
			if err != nil {
				return err
			}
			p.StatedDigest = p.Digest()
			format := policy.YAML
			if asJSON {
				format = policy.JSON
			}
			data, err := p.Encode(format)
			if err != nil {
				return err
			}
			_, err = std.out.Write(data)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON with sorted keys")
	return cmd
}

// openPolicy opens a built-in policy by name, or the policy of one or more
// files.
func openPolicy(args []string) (*policy.Policy, error) {
	if len(args) == 1 {
		return policy.Open(args[0])
	}
	return policy.Load(args...)
}

func newPolicyValidate(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check a policy file; exit status 3 when it has faults",
		Long: `Check a policy file and print every fault, one a line, on standard error. The
exit status is 0 when there is none, 3 when there are some. Several files give
one policy together.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := policy.Load(args...)
			if err != nil {
				return complainAll(std.err, err)
			}
			_, err = fmt.Fprintf(std.out, "%s: policy %s is valid, digest %s\n", strings.Join(args, ", "), p.Name, p.Digest())
			return err
		},
	}
}

// complainAll writes the problems of a policy one a line and returns what a
// command returns then. Another error is returned as it is.
func complainAll(w io.Writer, err error) error {
	var problems policy.Problems
	if !errors.As(err, &problems) {
		return err
	}
	for _, p := range problems {
		complain(w, p)
	}
	return checkError{}
}

func newPolicyFreeze(std stdio) *cobra.Command {
	var evidence, out string
	cmd := &cobra.Command{
		Use:   "freeze FILE --evidence REPORT",
		Short: "Freeze a policy on the evidence of an evaluation report",
		Long: `Write the policy with every key explicit, its digest and the SHA-256 of an
evaluation report. From then on the file is refused when its content changes.
It replaces FILE unless --out names another file. Comments are not kept.`,
		Example: "  mmplug policy freeze team.policy.yaml --evidence report.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if evidence == "" {
				return usageError{errors.New(`a policy is frozen on evidence: give an evaluation report with --evidence REPORT; see "mmplug policy freeze --help"`)}
			}
			sum, err := policy.EvidenceOf(evidence)
			if err != nil {
				return err
			}
			p, err := policy.Freeze(args[0], out, sum)
			if errors.Is(err, mapmatched.ErrPolicyFrozen) {
				if err = complainAll(std.err, err); !errors.As(err, new(checkError)) {
					err = checkError{err}
				}
			}
			if err != nil {
				return err
			}
			written := args[0]
			if out != "" {
				written = out
			}
			_, err = fmt.Fprintf(std.out, "%s: policy %s is frozen, digest %s, evidence %s\n", written, p.Name, p.Digest(), p.Evidence)
			return err
		},
	}
	cmd.Flags().StringVar(&evidence, "evidence", "", "evaluation report (required)")
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write (default: FILE itself)")
	return cmd
}

func newPolicyVerify(std stdio) *cobra.Command {
	var evidence string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a frozen policy is unchanged; exit status 3 when it is not",
		Long: `Check that a policy is frozen, that its content has the digest it was frozen
with and, with --evidence, that it was frozen on this report. The exit status is
3 when one of that does not hold.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := policy.Load(args[0])
			if err != nil {
				return complainAll(std.err, err)
			}
			if !p.Frozen() {
				return checkError{fmt.Errorf("%s: policy %s is not frozen: see \"mmplug policy freeze --help\"", args[0], p.Name)}
			}
			if evidence != "" {
				sum, err := policy.EvidenceOf(evidence)
				if err != nil {
					return err
				}
				if sum != p.Evidence {
					return checkError{fmt.Errorf("%s: policy %s was frozen on a report with the SHA-256 %s, %s has %s", args[0], p.Name, p.Evidence, evidence, sum)}
				}
			}
			_, err = fmt.Fprintf(std.out, "%s: policy %s is as it was frozen, digest %s, evidence %s\n", args[0], p.Name, p.StatedDigest, p.Evidence)
			return err
		},
	}
	cmd.Flags().StringVar(&evidence, "evidence", "", "evaluation report to compare with")
	return cmd
}

func newPolicyDiff(std stdio) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff FILE|NAME FILE|NAME",
		Short: "Say how two policies differ; exit status 3 when they do",
		Long: `Say how two policies differ, key by key. Names, descriptions, comments and the
order of keys make no difference. The exit status is 0 when the digests are the
same, 3 when they are not.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := policy.Open(args[0])
			if err != nil {
				return err
			}
			b, err := policy.Open(args[1])
			if err != nil {
				return err
			}
			changes := policy.Diff(a, b)
			if asJSON {
				if changes == nil {
					changes = []policy.Change{}
				}
				err = writeJSON(std.out, map[string]any{"changes": changes, "digests": []string{a.Digest(), b.Digest()}})
			} else {
				err = printChanges(std.out, changes, a.Digest())
			}
			if err == nil && len(changes) > 0 {
				err = checkError{}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printChanges(w io.Writer, changes []policy.Change, digest string) error {
	var b strings.Builder
	for _, c := range changes {
		b.WriteString(c.String() + "\n")
	}
	if len(changes) == 0 {
		b.WriteString("the same policy, digest " + digest + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func newPolicySchema(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print a JSON Schema of policy files, for editors",
		Example: "  mmplug policy schema > policy.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := std.out.Write(policy.JSONSchema())
			return err
		},
	}
}
