package lexical

import "strings"

// StopwordsSHA256 pins the stopword list: the SHA-256 of [Stopwords], one word
// a line, each line ended by a line feed.
const StopwordsSHA256 = "d033eacb7c5635b42786e0551409ce2232828cd1365bda1e0fa42c447f27a160"

// stopwordList holds English function words, sorted, and what the tokenizer
// leaves of contractions: "don't" is split at the apostrophe into "don" and
// "t". Verbs and nouns that carry the subject of a question ("happen",
// "expire", "change") are not in it.
const stopwordList = `a
about
after
again
all
also
am
an
and
any
are
aren
as
at
be
because
been
before
being
both
but
by
can
could
couldn
d
did
didn
do
does
doesn
doing
don
each
either
else
for
from
had
hadn
has
hasn
have
haven
having
he
her
here
hers
herself
him
himself
his
how
i
if
in
into
is
isn
it
its
itself
just
let
ll
m
me
might
must
my
myself
neither
no
nor
not
of
on
or
our
ours
ourselves
re
s
shall
she
should
shouldn
so
some
such
t
than
that
the
their
theirs
them
themselves
then
there
these
they
this
those
to
too
ve
very
was
wasn
we
were
weren
what
when
where
whether
which
while
who
whom
whose
why
will
with
would
wouldn
you
your
yours
yourself
yourselves
`

// Stopwords returns the words that [Analyze] leaves out, sorted.
func Stopwords() []string { return strings.Fields(stopwordList) }

var isStopword = func() map[string]bool {
	words := make(map[string]bool)
	for _, w := range Stopwords() {
		words[w] = true
	}
	return words
}()
