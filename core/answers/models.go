package answers

import "github.com/stackglass/stackglass/core/report"

// ModelQuestion is what a page asks of the compute-node models of a program, which run
// in another one (package compute).
type ModelQuestion struct {
	Machine   []string // the hierarchy in question, a level a line (hierarchy.Lines)
	Processor string   // its name; "" for the default one
	// Changes are lines of a file of probabilities, over what was measured or read:
	// branches and parameters.
	Changes string
	// Function is 1 + the number of the function that is looked at, Block that of a block
	// in the program; 0 for the ones that take most.
	Function, Block uint32
	Whole           bool // the whole file of probabilities is wanted, too
}

// ModelReply answers a ModelQuestion. These are its tables, by their keys:
//
//	program     name, value: what is known of the whole
//	functions   number, function, source, calls, instructions, share, cycles, limit
//	blocks      number, block, source, count, instructions, share, cycles_each, cycles, limit: of the function, most cycles first
//	ways        from, to (blocks of the function by number, from 0), share, count
//	branches    branch (its name in the file of probabilities), block (as in ways), source, to, share, count, text, origin
//	schedule    of the block: cycle, and a column for each port that is held
//	bounds      of the block: name, value; cycles
//	parameters  name, value
//	processors  name, title, chosen
//
// Times are in cycles of the processor's core, shares from 0 to 1.
type ModelReply struct {
	Function, Block uint32         // that the tables are about, as in the question
	Problem         string         // why there are no numbers, in a sentence; ""
	Notes           []string       // what to know of them, in sentences
	Unmodelled      []string       // what runtimes leave out, in a few words each
	Tables          []report.Table // by their keys
	File            string         // of probabilities
	Profile         []byte         // encoded: of a module that was given alone, to be kept
}

// Table is the table with that key, or nil.
func (r *ModelReply) Table(key string) *report.Table { return tableOf(r.Tables, key) }
