// Package answerers answers the questions that are sent to a workers.AnswerHost. The package is
// part of the page's second program, which is as large as the first program and is loaded on
// demand.
package answerers

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program" // the import also registers more verbs
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/hierarchy/config"
	"github.com/stackglass/stackglass/core/hierarchy/sources"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/workers"
)

// OpenTrace opens the trace that is attached to a question, for one pass.
type OpenTrace func(name, format string, attachment any) (trace.Reader, io.Closer, error)

// All returns a map from the names of questions to the functions that open their answerers.
func All(open OpenTrace) map[string]func(workers.Subject) (workers.Answerer, error) {
	return map[string]func(workers.Subject) (workers.Answerer, error){
		answers.OfModels:      models,
		answers.OfCores:       func(workers.Subject) (workers.Answerer, error) { return cores(open), nil },
		answers.OfExport:      exports,
		answers.OfMachine:     machine,
		answers.OfVerb:        func(s workers.Subject) (workers.Answerer, error) { return verbs(s, open) },
		answers.OfDescription: func(workers.Subject) (workers.Answerer, error) { return describe, nil },
		answers.OfNames:       func(workers.Subject) (workers.Answerer, error) { return names, nil },
	}
}

func models(s workers.Subject) (workers.Answerer, error) {
	m, err := costmodel.Open(s.Profile, s.Name, s.Module)
	return func(q answers.Question, _ any, _ func() bool, give func(*answers.Reply)) error {
		words, err := answers.ReadModelQuestion(q.Words)
		if err == nil {
			reply := m.Answer(words)
			ask.NameFunctions(reply.Tables, program.Readable)
			give(reply)
		}
		return err
	}, err
}

func cores(open OpenTrace) workers.Answerer {
	return func(q answers.Question, attachment any, wanted func() bool, give func(*answers.Reply)) error {
		words, err := answers.ReadMulticoreQuestion(q.Words)
		if err == nil {
			predict.Answer(words, func() (trace.Reader, io.Closer, error) { return open(words.Name, words.Format, attachment) }, wanted, give)
		}
		return err
	}
}

// partialEvery is the minimum time between partial replies.
const partialEvery = 300 * time.Millisecond

// verbs answers any verb of package ask about one profile. The reply contains the document's tables
// and warnings, and in the field Bytes, the document as JSON. If the verb depends on a processor,
// the reply also contains the table "processors". During a long answer, partial replies contain the
// table "progress", but no JSON. The field Bytes of the question contains the format of the attached
// trace, which only some verbs read.
func verbs(s workers.Subject, open OpenTrace) (workers.Answerer, error) {
	p, err := profile.Decode(s.Profile)
	return func(q answers.Question, attachment any, wanted func() bool, give func(*answers.Reply)) error {
		asked, err := ask.Parse(q.Words)
		if err != nil {
			return err
		}
		run := ask.NewRun(s.Name, p)
		if attachment != nil {
			run.Replay = replay(run, func() (trace.Reader, io.Closer, error) { return open(s.Name, string(q.Bytes), attachment) })
		}
		replyWith := func(d *report.Document) *answers.Reply {
			reply := &answers.Reply{Notes: d.Warnings, Tables: d.Tables}
			if asked.Verb.Arg("processor") != nil {
				reply.Tables = append(reply.Tables, costmodel.Processors(asked.Text("processor")))
			}
			return reply
		}
		run.Readable, run.GoOn = program.Readable, wanted
		last := time.Now()
		run.Partial = func(soFar func() *report.Document) {
			if time.Since(last) >= partialEvery {
				reply := replyWith(soFar())
				reply.More = true
				give(reply)
				last = time.Now()
			}
		}
		d, err := run.Answer(asked)
		if err != nil {
			give(&answers.Reply{Problem: err.Error()})
			return nil
		}
		reply := replyWith(d)
		reply.Bytes = d.JSON()
		give(reply)
		return nil
	}, err
}

// stepsBetweenLooks is the number of steps of a replay between two checks whether the answer is still
// wanted. A step reads at most 4,096 references.
const stepsBetweenLooks = 16

// replay returns a replay of the trace from which the run's profile was computed. The replay reads
// the same part of the trace, with the same threads on each core. If the profile is partial, the
// replay ends at the same reference, and its profile is partial for the same reason. Partial answers
// contain the table "progress", with the numbers of references read and of all references.
func replay(run *ask.Run, open func() (trace.Reader, io.Closer, error)) *ask.Replay {
	in, all, state := run.Profile.Input, run.Profile.Totals.AllReferences(), run.Profile.State
	limit := in.Limit
	if state.Partial {
		limit = all
	}
	x := &ask.Replay{Skip: in.Skip, MemoryBytes: mostReplayed, Count: func() (uint64, error) { return all, nil }}
	if len(run.Profile.Sharing) > 0 {
		for _, c := range run.Profile.Sharing[0].Cores {
			if x.Cores = append(x.Cores, c.Threads); len(c.Threads) > 1 {
				run.Cores = answers.Groups(run.Profile)
			}
		}
	}
	if run.Cores == "" {
		x.Cores = nil // each thread has a core, in the order in which the threads appear
	}
	x.Read = func(to *ask.Run, c ask.Consumer) error {
		r, file, err := open()
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		runner, err := analysis.NewRunner(analysis.Spec{Kinds: in.Kinds, Threads: in.Threads, Skip: in.Skip, Limit: limit, Analyses: c.Analyses}, r)
		if err != nil {
			return err
		}
		switch {
		case c.Events:
			runner.BesideEvents(c.Make)
		case c.Sites:
			runner.BesideSites(c.Make)
		default:
			runner.Beside(c.Make(nil))
		}
		for step := 1; err == nil; step++ {
			if step%stepsBetweenLooks == 0 {
				if !to.Wanted() {
					return ask.ErrStopped
				}
				to.Partial(func() *report.Document {
					t := report.Table{Key: "progress", Columns: report.Columns("references", "of")}
					t.Add(report.Count(runner.Progress().References), report.Count(all))
					return &report.Document{Tables: []report.Table{t}}
				})
			}
			err = runner.Step()
		}
		read := runner.Progress().References
		after := state
		switch {
		case err == io.EOF: // the end of the trace, or of the part that the profile covers
		case read == 0:
			return err
		default:
			after = analysis.StateAfter(err, read)
		}
		to.Profile = runner.Finish(after)
		to.Warnings = ask.Doubts(to.Name, to.Profile)
		return nil
	}
	return x
}

// mostReplayed is the memory limit of a simulation. The memory of a web page is limited to 4 GiB.
const mostReplayed = 2 << 30

// machine answers a question of the verb what-if. The reply contains the options of the hierarchy,
// the warnings and the tables about TLBs of a brief document, its comparison of two hierarchies, and
// the sources of the numbers. The field Bytes of the question contains the name of the preset.
func machine(s workers.Subject) (workers.Answerer, error) {
	p, err := profile.Decode(s.Profile)
	return func(q answers.Question, _ any, _ func() bool, give func(*answers.Reply)) error {
		asked, err := ask.Parse(q.Words)
		if err != nil {
			return err
		}
		asked.Brief = true
		reply := &answers.Reply{Tables: answers.Choices(asked.Machine)}
		if d, err := ask.NewRun(s.Name, p).Answer(asked); err != nil {
			reply.Problem = err.Error()
		} else {
			reply.Notes = d.Warnings
			for _, t := range d.Tables {
				if t.Key == "against" || t.Key == "tlbs" || t.Key == "page_walks" {
					reply.Tables = append(reply.Tables, t)
				}
			}
		}
		if list := sources.ForPreset(string(q.Bytes)); list != nil {
			t := report.Table{Key: "sources", Title: "Sources of the numbers of this hierarchy", Columns: report.Columns("source")}
			for _, text := range list {
				t.Add(report.TextOf(text))
			}
			reply.Tables = append(reply.Tables, t)
		}
		give(reply)
		return nil
	}, err
}

func exports(s workers.Subject) (workers.Answerer, error) {
	return func(q answers.Question, _ any, _ func() bool, give func(*answers.Reply)) error {
		request, err := export.ReadRequest(q.Words, s.Profile)
		if err != nil {
			return err
		}
		file, err := request.Answer(program.Readable)
		if err == nil {
			give(&answers.Reply{Bytes: file})
		}
		return err
	}, nil
}

// names demangles the function names in a question: it returns the names as they are written in the
// source code, in the order of the question.
func names(q answers.Question, _ any, _ func() bool, give func(*answers.Reply)) error {
	reply := &answers.Reply{}
	for _, name := range q.Words {
		reply.Notes = append(reply.Notes, program.Readable(name))
	}
	give(reply)
	return nil
}

// describe parses a description of a cache hierarchy. The field Bytes of the reply contains the
// part of the hierarchy that the page predicts or simulates, in the format of hierarchy.Lines. The
// notes list the other parts of the description.
func describe(q answers.Question, _ any, _ func() bool, give func(*answers.Reply)) error {
	h, notes, err := config.Read(q.Bytes)
	if err != nil {
		return errors.New("the file was read as " + string(config.Recognise(q.Bytes)) + ": " + err.Error())
	}
	kept := h.Predictable()
	kept.TLBs, kept.PageBytes = h.TLBs, h.PageBytes
	for i := range kept.Levels { // the page simulates prefetchers, unless they need sub-blocks
		if f := h.Levels[i].Prefetch; f.Kind <= hierarchy.Stream {
			kept.Levels[i].Prefetch = f
			h.Levels[i].Prefetch = hierarchy.Prefetch{}
		}
	}
	parts := h.Beyond()
	for _, c := range h.InstructionTLBs {
		parts = append(parts, c.Name)
	}
	for _, c := range h.Instructions {
		parts = append(parts, "the instruction cache "+c.Name)
	}
	if len(parts) > 0 {
		notes = append(notes, "predictions do not model "+strings.Join(parts, ", ")+"; to simulate them, use the command stackglass simulate")
	}
	give(&answers.Reply{Notes: notes, Bytes: []byte(strings.Join(kept.Lines(), "\n"))})
	return nil
}
