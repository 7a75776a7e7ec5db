package answers

// ModelQuestion is a Question to the compute-node models of a program (package costmodel).
// These are the tables of the reply, by their keys:
//
//	program     name, value: what is known of the whole
//	functions   number, function, source, calls, instructions, share, cycles, limit
//	chosen      function, block: the numbers of those that the other tables are about, 0: none
//	blocks      number, block, source, count, instructions, share, cycles_each, cycles, limit: of the function, most cycles first
//	ways        from, to (blocks of the function by number, from 0), share, count
//	branches    branch (its name in the file of probabilities), block (as in ways), source, to, share, count, text, origin
//	schedule    of the block: cycle, and a column for each port that is held
//	bounds      of the block: name, value; cycles
//	parameters  name, value
//	processors  name, title, chosen
//
// Times are in cycles of the processor's core, shares from 0 to 1. Bytes are the encoded
// profile of a module that was given alone, to be kept, or the file of probabilities.
type ModelQuestion struct {
	Machine   []string // the hierarchy in question, a level a line (hierarchy.Lines)
	Processor string   // its name; "" for the default one
	// Changes are lines of a file of probabilities, over what was measured or read:
	// branches and parameters.
	Changes string
	// Function is 1 + the number of the function that is looked at, Block that of a block
	// in the program; 0 for the ones that take most.
	Function, Block uint32
	Whole           bool // the reply's Bytes shall be the file of probabilities
}

func (q *ModelQuestion) fields(f *Fields) {
	f.Texts("machine", &q.Machine)
	f.Text("processor", &q.Processor)
	f.Text("changes", &q.Changes)
	f.Number("function", &q.Function)
	f.Number("block", &q.Block)
	f.Flag("whole", &q.Whole)
}

// Question returns q as a Question.
func (q ModelQuestion) Question() Question { return Question{Of: OfModels, Words: WordsOf(q.fields)} }

// ReadModelQuestion reads the words of a question. The error is a *[trace.OptionError].
func ReadModelQuestion(words []string) (q ModelQuestion, err error) {
	err = ReadWords(words, q.fields)
	return q, err
}

// NoHierarchy is the note of a reply that knows no caches.
const NoHierarchy = "Every load takes the latency of a hit in the first level, because no cache hierarchy is given."
