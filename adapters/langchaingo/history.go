package langchaingo

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/mapmatched"
)

// Turn is a question and what the assistant replied, "" when it has not.
type Turn struct{ Question, Answer string }

// TurnsFromHistory returns the turns of a chat history, oldest first: each
// human message with the messages of the assistant up to the next one, a line
// feed between them. What the assistant says before the first question, and
// messages of other types, are left out.
func TurnsFromHistory(ctx context.Context, h schema.ChatMessageHistory) ([]Turn, error) {
	messages, err := h.Messages(ctx)
	if err != nil {
		return nil, failed(ctx, "history", "chat history", err)
	}
	return turns(messages), nil
}

// TurnsFromMemory returns the turns that a chain's memory has, as
// TurnsFromHistory does. The memory has to return messages; one that returns
// its history as a single text is an error. An empty memory has no turns.
func TurnsFromMemory(ctx context.Context, m schema.Memory) ([]Turn, error) {
	values, err := m.LoadMemoryVariables(ctx, map[string]any{})
	if err != nil {
		return nil, failed(ctx, "history", "memory", err)
	}
	key := m.GetMemoryKey(ctx)
	switch value := values[key].(type) {
	case nil:
		return nil, nil
	case []llms.ChatMessage:
		return turns(value), nil
	case string:
		if value == "" {
			return nil, nil
		}
		return nil, fail("history", mapmatched.KindInvalid, "memory %q is one text, in which turns cannot be told apart; set ReturnMessages or pass its ChatHistory to TurnsFromHistory", key)
	default:
		return nil, fail("history", mapmatched.KindInvalid, "memory %q is a %T, want []llms.ChatMessage", key, value)
	}
}

func turns(messages []llms.ChatMessage) []Turn {
	var list []Turn
	for _, m := range messages {
		if m == nil {
			continue
		}
		switch m.GetType() {
		case llms.ChatMessageTypeHuman:
			list = append(list, Turn{Question: m.GetContent()})
		case llms.ChatMessageTypeAI:
			if len(list) == 0 || m.GetContent() == "" {
				continue
			}
			last := &list[len(list)-1]
			if last.Answer != "" {
				last.Answer += "\n"
			}
			last.Answer += m.GetContent()
		}
	}
	return list
}

// earlier returns the turns before a question. A last one that is the question
// itself, without an answer, is left out.
func earlier(ctx context.Context, history func(context.Context, string) ([]Turn, error), id, question string) ([]Turn, error) {
	list, err := history(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	if last := len(list) - 1; last >= 0 && list[last] == (Turn{Question: question}) {
		list = list[:last]
	}
	return list, nil
}

// questions are the questions of turns.
func questions(list []Turn) []string {
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.Question
	}
	return texts
}
