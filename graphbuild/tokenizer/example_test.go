package tokenizer_test

import (
	"fmt"
	"os"

	"github.com/mapmatched/mmplug/graphbuild/tokenizer"
)

func Example() {
	data, err := os.ReadFile("testdata/wordpiece-uncased.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	tok, err := tokenizer.Parse(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	const text = "The Straße: 路!"
	tokens, err := tok.Encode(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tokens {
		fmt.Printf("%d %q\n", t.ID, text[t.Start:t.End])
	}
	short, err := tok.Truncate(text, 1)
	fmt.Printf("%q %v\n", short, err)
	// Output:
	// 462 "The"
	// 52 "S"
	// 307 "t"
	// 476 "ra"
	// 361 "ß"
	// 302 "e"
	// 27 ":"
	// 274 "路"
	// 5 "!"
	// "The " <nil>
}
