package langchaingo

import (
	"context"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/mapmatched/mmplug/mapmatched"
)

// QuestionsFromHistory returns what the user said in a chat history, oldest
// first: the texts of its human messages.
func QuestionsFromHistory(ctx context.Context, h schema.ChatMessageHistory) ([]string, error) {
	messages, err := h.Messages(ctx)
	if err != nil {
		return nil, failed(ctx, "history", "chat history", err)
	}
	return questions(messages), nil
}

// QuestionsFromMemory returns what the user said according to a chain's memory,
// oldest first. The memory has to return messages; one that returns its
// history as a single text is an error. An empty memory has no questions.
func QuestionsFromMemory(ctx context.Context, m schema.Memory) ([]string, error) {
	values, err := m.LoadMemoryVariables(ctx, map[string]any{})
	if err != nil {
		return nil, failed(ctx, "history", "memory", err)
	}
	key := m.GetMemoryKey(ctx)
	switch value := values[key].(type) {
	case nil:
		return nil, nil
	case []llms.ChatMessage:
		return questions(value), nil
	case string:
		if value == "" {
			return nil, nil
		}
		return nil, fail("history", mapmatched.KindInvalid, "memory %q is one text, in which turns cannot be told apart; set ReturnMessages or pass its ChatHistory to QuestionsFromHistory", key)
	default:
		return nil, fail("history", mapmatched.KindInvalid, "memory %q is a %T, want []llms.ChatMessage", key, value)
	}
}

func questions(messages []llms.ChatMessage) []string {
	var texts []string
	for _, m := range messages {
		if m != nil && m.GetType() == llms.ChatMessageTypeHuman {
			texts = append(texts, m.GetContent())
		}
	}
	return texts
}
