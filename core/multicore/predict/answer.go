package predict

import (
	"io"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/trace"
)

// DefaultProcessor in a question stands for the one that runtimes are of where nobody says
// otherwise.
const DefaultProcessor = "default"

// threadsOf are mimicked threads, and what is read for them.
type threadsOf struct {
	Threads
	file io.Closer
}

func (t threadsOf) Close() error { return t.file.Close() }

// Unwrap gives the threads, for what they tell of themselves.
func (t threadsOf) Unwrap() Threads { return t.Threads }

// Answer answers a question as numbers of cores are done, and asks goOn now and then whether
// to go on; where that ends it, nothing more is given. The trace is opened once for each
// pass.
func Answer(words answers.MulticoreQuestion, open func() (trace.Reader, io.Closer, error), goOn func() bool, give func(*answers.Reply)) {
	if words.Processor == DefaultProcessor {
		words.Processor = costmodel.DefaultProcessor
	}
	tell := func(reply *answers.Reply, err error) {
		if err != nil {
			reply.More, reply.Problem = false, err.Error()
		}
		if words.Processor != "" {
			reply.Tables = append(reply.Tables, costmodel.Processors(words.Processor))
		}
		give(reply)
	}
	q, err := Ask(words)
	if err != nil {
		tell(&answers.Reply{}, err)
		return
	}
	run, err := New(q, func(o multicore.Options) (Threads, error) {
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
	})
	if err != nil {
		tell(&answers.Reply{}, err)
		return
	}
	defer run.Close()
	for done := 0; goOn(); {
		err := run.Step()
		switch n := len(run.Results()); {
		case err == io.EOF:
			tell(run.Reply(), nil)
			return
		case err != nil:
			tell(run.Reply(), err)
			return
		case n > done:
			done = n
			tell(run.Reply(), nil)
		}
	}
}
