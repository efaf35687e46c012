package policy_test

import (
	"fmt"

	"github.com/mapmatched/mmplug/policy"
)

func ExampleParse() {
	yaml := policy.Source{Path: "a.policy.yaml", Data: []byte("schema: mmplug.policy/1\nname: wide\ncontext: {radius: 2}\n")}
	toml := policy.Source{Path: "b.policy.toml", Data: []byte("name = 'broad'\nschema = 'mmplug.policy/1'\ncontext.radius = 2.0\n")}
	a, err := policy.Parse(yaml)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := policy.Parse(toml)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Name, a.Context.Radius, b.Name, b.Context.Radius, a.Digest() == b.Digest())
	// Output: wide 2 broad 2 true
}

func ExampleProblems() {
	_, err := policy.Parse(policy.Source{Path: "team.policy.yaml", Data: []byte(`schema: mmplug.policy/1
name: team
context:
  radius: "2"
  limmit: 5
`)})
	fmt.Println(err)
	// Output:
	// team.policy.yaml:4: `context.radius` is the text "2", it must be a number: remove the quotes
	// team.policy.yaml:5: unknown key `context.limmit`, did you mean `context.limit`?
}

func ExamplePolicy_Config() {
	p, err := policy.Builtin(policy.Plain)
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := p.Config()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*config.TransitionWeight, config.ScoreNormalization, config.PolicyDigest == p.Digest())
	// Output: 1 zscore true
}
