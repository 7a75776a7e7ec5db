package answers

import "strings"

// A view of loops lists the nests that make this share of the references or more, and at
// most so many; asker and answerer have to agree.
const (
	LeastNest = 0.001
	MostNests = 400
)

// NestChange is a change to the code as the command's options have it: its kind and the rest.
type NestChange struct{ Kind, Text string }

// LoopQuestion is a Question about a run's loops (package loopcount): misses by loop, and
// what changes to a nest would save. It always is all that is wanted; what was counted
// before is not counted again. A first reply is of the loops as they are. Its tables, by
// their keys:
//
//	levels     level, problem (why nothing is counted, in a sentence; with counts, what is otherwise in
//	           the cache), sets, ways, accesses, jumped (those that were not made one by one)
//	by_loop    the misses of each loop, by their numbers; a column for each level, in the same order
//	misses     of the loop, of all other accesses and of the run, by level and cause
//	evictions  whose lines went because whose came
//	classes    of the loop's arrays, in their order: class; its label says in which level
//
// A second one is of the changes, with doubts about them as Notes; its Problem says why none
// can be tried on the nest:
//
//	wrong      what is wrong with each change, in a sentence; "" for nothing
//	tried      what the changes do, each by itself
//	proposed   changes that were found
type LoopQuestion struct {
	Machine []string // the hierarchy in question, a level a line (hierarchy.Lines)
	Loop    uint32   // the number of the loop that is looked at
	Nest    uint32   // the number of the nest that changes are tried on
	Changes []NestChange
	Propose bool // changes are to be searched for
}

// PartChanges is the part of a reply about loops that is of the changes.
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

// Question returns q as it is asked.
func (q LoopQuestion) Question() Question { return Question{Of: OfLoops, Words: WordsOf(q.fields)} }

// ReadLoopQuestion reads the words of a question. The error is a *[trace.OptionError].
func ReadLoopQuestion(words []string) (q LoopQuestion, err error) {
	err = ReadWords(words, q.fields)
	return q, err
}
