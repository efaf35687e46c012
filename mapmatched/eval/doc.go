// Package eval measures whether conversations find better passages with the
// decoder than without.
//
// A [Data] is a corpus with conversations whose turns are labelled with the
// passages that answer them. [Load], [LoadTopiOCQA], [LoadCAsT] and [LoadMTRAG]
// read the public forms and [Synthetic] makes one from a seed. A [World] says
// which chunks compete for a conversation and searches them in memory. A
// [Method] ranks the turns of a conversation: a baseline, or a policy exactly as
// a conversation follows it. [Run] ranks all conversations by all methods and
// gives a [Report] with metrics by slice, their bootstrap intervals, paired
// differences to pointwise search, and gates.
//
// Everything is deterministic: the same files, settings and seed give the same
// report, byte for byte, on any number of cores and after an interruption.
package eval
