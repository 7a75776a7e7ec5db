package answers

import "strings"

// A view of loops lists at most MostNests nests, with at least this share of the references each.
// The page and the program that answers it have to agree.
const (
	LeastNest = 0.001
	MostNests = 400
)

// NestChange is a change to the code: the name and the value of an option of the command.
type NestChange struct{ Kind, Text string }

// LoopQuestion is a Question about a run's loops (package loopcount): misses by loop, and the
// misses that changes to a nest would save. Counts of the previous question are reused. The
// first reply is about the unchanged loops. Its tables, by their keys:
//
//	levels     level, problem (why nothing is counted, or a warning), sets, ways, accesses,
//	           jumped (accesses that were not simulated)
//	by_loop    the misses of each loop, in order; a column for each level, in the same order
//	misses     of the loop, of all other accesses and of the run, by level and cause
//	evictions  pairs of arrays of which one evicts lines of the other
//	classes    of the loop's arrays, in order: class; its label names the level
//
// The second reply is about the changes. Its Notes are warnings; its Problem says why no change
// can be tried on the nest:
//
//	wrong      what is wrong with each change, in a sentence, or ""
//	tried      the misses with each change
//	proposed   changes that were found
type LoopQuestion struct {
	Machine []string // the hierarchy in question, a level a line (hierarchy.Lines)
	Loop    uint32   // the number of the loop that is looked at
	Nest    uint32   // the number of the nest that changes are tried on
	Changes []NestChange
	Propose bool // changes are to be searched for
}

// PartChanges is the part of the reply about changes.
const PartChanges = "changes"

func (q *LoopQuestion) fields(f *Fields) {
	f.Texts("machine", &q.Machine)
	f.Number("loop", &q.Loop)
	f.Number("nest", &q.Nest)
	var changes []string
	for _, c := range q.Changes {
		changes = append(changes, c.Kind+" "+c.Text)
	}
	f.Texts("change", &changes)
	q.Changes = nil
	for _, text := range changes {
		kind, text, _ := strings.Cut(text, " ")
		q.Changes = append(q.Changes, NestChange{kind, text})
	}
	f.Flag("propose", &q.Propose)
}

// Question returns q as a Question.
func (q LoopQuestion) Question() Question { return Question{Of: OfLoops, Words: WordsOf(q.fields)} }

// ReadLoopQuestion reads the words of a question. The error is a *[trace.OptionError].
func ReadLoopQuestion(words []string) (q LoopQuestion, err error) {
	err = ReadWords(words, q.fields)
	return q, err
}
