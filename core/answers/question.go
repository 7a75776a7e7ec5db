package answers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Question is a question that the page sends to its second WebAssembly program, which contains the
// code that most visitors do not need. The subject (a profile or a module) is sent once, before the
// questions.
type Question struct {
	Of    string   // the kind of question: one of the constants below
	Words []string // the fields of the question, each in the form name=value (see Fields)
	Bytes []byte   // the content of a file, if the question is about a file
}

// The kinds of questions, for the field Of.
const (
	OfModels      = "models"      // a ModelQuestion, for the compute-node models
	OfCores       = "multicore"   // a MulticoreQuestion
	OfExport      = "export"      // an export.Request
	OfVerb        = "verb"        // a question for a verb, as returned by ask.Question.Words; Bytes contains the format of the attached trace
	OfDescription = "description" // the description of a cache hierarchy, in Bytes
	OfMachine     = "machine"     // a question for the verb what-if; the reply contains what the page's first program does not compute, and Choices
	OfNames       = "names"       // function names to demangle, one per word; the reply's notes contain the readable names
)

// Reply is an answer to a Question, or a part of an answer. The documentation of each question type
// lists the keys of the reply's tables, and explains the reply's field Bytes.
type Reply struct {
	More       bool           // whether another reply to the same question follows
	Problem    string         // the reason why there is no answer; "" if there is an answer
	Notes      []string       // warnings, as full sentences
	Unmodelled []string       // short descriptions of the costs that the predicted times do not include
	Tables     []report.Table // the reply's tables, identified by their keys
	Bytes      []byte         // the contents of a file, or an encoded profile
}

// Table returns the table with this key, or nil.
func (r *Reply) Table(key string) *report.Table {
	if at := slices.IndexFunc(r.Tables, func(t report.Table) bool { return t.Key == key }); at >= 0 {
		return &r.Tables[at]
	}
	return nil
}

// Fields describes the fields of a question by name, so that the fields can be written and read.
// WordsOf writes the values of the fields as words of the form name=value, and ReadWords sets the
// fields. A zero value is not written. A list is written as one word for each value.
type Fields struct {
	words   []string
	reading bool
	err     error // the first error while fields were read
}

// WordsOf returns the fields of a question as words. The parameter list is a function that
// describes the fields.
func WordsOf(list func(*Fields)) []string {
	var f Fields
	list(&f)
	return f.words
}

// ReadWords sets the fields of a question from words. The parameter list is a function that
// describes the fields. If a value or a name is wrong, ReadWords returns a *[trace.OptionError].
func ReadWords(words []string, list func(*Fields)) error {
	f := Fields{words: slices.Clone(words), reading: true}
	if list(&f); f.err == nil && len(f.words) > 0 {
		f.fail("question", f.words[0], "a name that this version of the page knows; reload the page")
	}
	return f.err
}

func (f *Fields) fail(name, got, want string) {
	if f.err == nil {
		f.err = &trace.OptionError{Option: name, Got: got, Want: want}
	}
}

// Texts describes a field that is a list of texts. A nil list and an empty list are equivalent.
func (f *Fields) Texts(name string, list *[]string) {
	if !f.reading {
		for _, value := range *list {
			f.words = append(f.words, name+"="+value)
		}
		return
	}
	*list = nil
	f.words = slices.DeleteFunc(f.words, func(word string) bool {
		of, value, found := strings.Cut(word, "=")
		if !found || of != name {
			return false
		}
		*list = append(*list, value)
		return true
	})
}

// Text describes a field that is a text.
func (f *Fields) Text(name string, text *string) {
	var list []string
	if *text != "" {
		list = []string{*text}
	}
	f.Texts(name, &list)
	switch *text = ""; {
	case len(list) > 1:
		f.fail(name, strings.Join(list, ", "), "one value")
	case len(list) == 1:
		*text = list[0]
	}
}

// Numbers describes a field that is a list of whole numbers. A nil list and an empty list are
// equivalent.
func (f *Fields) Numbers(name string, list *[]uint32) {
	var texts []string
	for _, n := range *list {
		texts = append(texts, strconv.FormatUint(uint64(n), 10))
	}
	f.Texts(name, &texts)
	*list = nil
	for _, text := range texts {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			f.fail(name, text, "a whole number below 2^32")
		}
		*list = append(*list, uint32(n))
	}
}

// Number describes a field that is a whole number.
func (f *Fields) Number(name string, n *uint32) {
	var list []uint32
	if *n != 0 {
		list = []uint32{*n}
	}
	f.Numbers(name, &list)
	switch *n = 0; {
	case len(list) > 1:
		f.fail(name, strconv.Itoa(len(list))+" numbers", "one value")
	case len(list) == 1:
		*n = list[0]
	}
}

// Wide describes a field that is a 64-bit whole number.
func (f *Fields) Wide(name string, n *uint64) {
	var text string
	if *n != 0 {
		text = strconv.FormatUint(*n, 10)
	}
	if f.Text(name, &text); text != "" {
		var err error
		if *n, err = strconv.ParseUint(text, 10, 64); err != nil {
			f.fail(name, text, "a whole number")
		}
	}
}

// Flag describes a Boolean field.
func (f *Fields) Flag(name string, set *bool) {
	var n uint32
	if *set {
		n = 1
	}
	f.Number(name, &n)
	*set = n != 0
}

// ModelQuestion is a Question to the compute-node models of a program (package costmodel). The
// reply has the following tables, listed by key:
//
//	program     name, value: facts of the whole program
//	functions   number, function, source, calls, instructions, share, cycles, limit
//	chosen      function, block: the subjects of the other tables, by number; 0: none
//	blocks      number, block, source, count, instructions, share, cycles_each, cycles, limit: of the function, most cycles first
//	ways        from, to (blocks of the function by number, from 0), share, count
//	branches    branch (its name in the branch-probability file), block (as in ways), source, to, share, count, text, origin
//	schedule    of the block: cycle, and a column for each busy port
//	bounds      of the block: name, value; cycles
//	parameters  name, value
//	processors  name, title, chosen
//
// Times are in cycles of the processor's core. Shares are between 0 and 1. The field Bytes of the
// reply is either the branch-probability file or, for a module without a profile, an encoded
// profile that the page stores.
type ModelQuestion struct {
	Machine   []string // the cache hierarchy, one level per line (hierarchy.Lines)
	Processor string   // the processor's name; "" for the default processor
	// Changes contains lines of a branch-probability file. These lines set the probabilities of
	// branches and the values of parameters, and override values that were measured or read from a
	// file.
	Changes string
	// Function is 1 + the index of the displayed function, and Block is 1 + the index of a block in
	// the program. The value 0 selects the function or block that takes the most time.
	Function, Block uint32
	Whole           bool // whether the reply contains the branch-probability file in Bytes
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

// NoHierarchy is the note in replies to questions without a cache hierarchy.
const NoHierarchy = "Every load is assumed to hit in the first level, because no cache hierarchy is given."
