package predict

import (
	"io"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/trace"
)

// DefaultProcessor is the processor name that selects costmodel.DefaultProcessor in a question.
const DefaultProcessor = "default"

// threadsOf contains synthesised threads, and the trace file from which they are synthesised.
type threadsOf struct {
	Threads
	file io.Closer
}

func (t threadsOf) Close() error { return t.file.Close() }

// Unwrap returns the synthesised threads without the trace file.
func (t threadsOf) Unwrap() Threads { return t.Threads }

// Mimic returns a source of threads that are synthesised from the trace of a single-threaded run.
func Mimic(open func() (trace.Reader, io.Closer, error)) Source {
	return func(o multicore.Options) (Threads, error) {
		r, file, err := open()
		if err != nil {
			return nil, err
		}
		threads, err := multicore.Mimic(r, o, nil)
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		return threadsOf{threads, file}, nil
	}
}

// Answer calls the function reply whenever the results for another number of cores are complete.
// Answer opens the trace once for each pass. Answer returns when the question is answered, or when
// the function proceed returns false.
func Answer(words answers.MulticoreQuestion, open func() (trace.Reader, io.Closer, error), proceed func() bool, reply func(*answers.Reply)) {
	if words.Processor == DefaultProcessor {
		words.Processor = costmodel.DefaultProcessor
	}
	tell := func(r *answers.Reply, err error) {
		if err != nil {
			r.More, r.Problem = false, err.Error()
		}
		if words.Processor != "" {
			r.Tables = append(r.Tables, costmodel.Processors(words.Processor))
		}
		reply(r)
	}
	q, err := Ask(words)
	if err != nil {
		tell(&answers.Reply{}, err)
		return
	}
	run, err := New(q, Mimic(open))
	if err != nil {
		tell(&answers.Reply{}, err)
		return
	}
	defer run.Close()
	for done := 0; proceed(); {
		err := run.Step()
		if err == io.EOF {
			tell(run.Reply(), nil)
			return
		}
		if n := len(run.Results()); err != nil || n > done {
			done = n
			tell(run.Reply(), err)
		}
		if err != nil {
			return
		}
	}
}
