// Package policy holds what a frozen policy file pins: the parameters of every
// formula, by section, and the formulas themselves, by version tag.
//
// A formula never changes under its tag; [Formula] looks a tag up and
// [Formulas] lists them. The formulas are pure functions of their arguments:
// same input, same bits. What waits for somebody else (the arms of a
// [FusedProvider], the reranker of [Rerank]) degrades visibly: the result says
// what did not answer.
//
// [New] puts the parts of a conversation together under a policy, and
// [Retriever.Ask] asks the next turn. With one arm and no active stage it is
// the decoder of package mapmatched, bit for bit.
//
// A stage can be off, shadow or active. In shadow it is computed and written
// to a [ShadowLog] without any effect on results.
package policy
