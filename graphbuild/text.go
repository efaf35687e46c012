package graphbuild

// ChunkText cuts plain text into chunks (strategy [StrategyText]).
//
// Paragraphs, which blank lines separate, are packed in order up to
// opts.MaxBytes. A paragraph that does not fit is cut at a line start, the end
// of a sentence, a space or, at last, between two characters; so is one that
// would leave a chunk less than a quarter full. Every byte of the document is
// in exactly one chunk, and no chunk cuts a character. An empty document has no
// chunks.
//
// The chunk IDs are the document ID and then that with "~2", "~3" and so on;
// the title is the file name without extension; sections, links and anchors
// are empty. Text that is not UTF-8 is an error that names the byte offset.
func ChunkText(doc Document, opts *ChunkOptions) (Chunked, error) {
	if err := opts.Validate(); err != nil {
		return Chunked{}, err
	}
	if err := doc.check(); err != nil {
		return Chunked{}, err
	}
	whole := section{id: idEscaper.Replace(doc.ID), end: len(doc.Text)}
	return Chunked{
		Document: doc.ID,
		Chunks:   cutSections(doc, baseTitle(doc.ID), []section{whole}, opts.maxBytes()),
	}, nil
}
