package program

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/report"
)

// Pipeline is the verb that predicts how many cycles a program's basic blocks take on a processor.
var Pipeline = ask.Add(&ask.Verb{
	Name:    "pipeline",
	Title:   "Cycles on a processor, and the bottlenecks",
	Machine: ask.SomeCaches,
	Places:  true,
	Args: []ask.Arg{
		{Name: "processor", Default: costmodel.DefaultProcessor, Help: "use this processor: a name, or a `FILE` with a description"},
		{Name: "probabilities", Help: "read branch probabilities from this `FILE`, in the format that blocks --template writes"},
		{Name: "set", Kind: ask.List, Help: "set parameters of the --probabilities file, as `NAME=NUMBER`, for example n=1000"},
		{Name: "module", Help: "also read the LLVM IR of the traced program from this `FILE`"},
		{Name: "function", Help: "print the blocks of this `FUNCTION` (default: the slowest)"},
		{Name: "block", Help: "print the schedule of the block with this `LABEL` (default: the slowest)"},
		ask.TopRows,
	},
	Needs: func(q ask.Question) analysis.Analyses {
		of := analysis.Sites | analysis.Sets | analysis.Blocks | analysis.Sharing
		if len(q.Machine.TLBs) > 0 {
			of |= analysis.Pages
		}
		return of
	},
	Lines:   ask.LevelLines,
	Check:   checkParameters,
	Missing: Blocks.Missing,
	Answer:  cycles,
})

func cycles(r *ask.Run, q ask.Question, d *report.Document) error {
	processor, err := Processor(r, q)
	if err != nil {
		return err
	}
	m, err := openModels(r, q)
	if err != nil {
		return err
	}
	m.Use(processor)
	words, err := modelQuestion(r, q)
	if err != nil {
		return err
	}
	reply, err := answerForBlock(r, m, words, q)
	if err != nil {
		return err
	}
	r.Modelled(q, reply, d)
	return nil
}

// Processor returns the processor in question. The question names either a known processor, or a
// file that describes a processor.
func Processor(r *ask.Run, q ask.Question) (*pipeline.Processor, error) {
	name := q.Text("processor")
	p, unknown := pipeline.Named(name)
	if unknown == nil {
		return p, nil
	}
	text, err := r.ReadFile(q, "processor")
	if err != nil {
		return nil, &ask.Error{Text: "--processor " + name + ": there is neither a processor nor a readable file with this name; want a file, or one of " + strings.Join(pipeline.Processors(), ", ")}
	}
	if p, err = pipeline.Read(text); err != nil {
		return nil, &ask.Error{Text: "--processor " + name + ": " + err.Error()}
	}
	return p, nil
}

// openModels opens the models of a run, together with the run's module if there is one. If there is
// no run, it opens the models of a module.
func openModels(r *ask.Run, q ask.Question) (*costmodel.Models, error) {
	name, text := r.Name, r.Module
	if r.Module == nil {
		if _, err := decodeRun(r); err != nil {
			return nil, err
		}
		var err error
		if text, err = r.ReadFile(q, "module"); err != nil {
			return nil, err
		}
		name = q.Text("module")
	}
	m, err := costmodel.New(r.Profile, name, text)
	if err != nil {
		return nil, r.Cannot(err.Error())
	}
	return m, nil
}

// modelQuestion converts a question of the verb pipeline to a ModelQuestion.
func modelQuestion(r *ask.Run, q ask.Question) (words answers.ModelQuestion, err error) {
	if len(q.Machine.Levels) > 0 {
		words.Machine = q.Machine.Lines()
	}
	if !q.Given("probabilities") {
		return words, nil
	}
	text, err := r.ReadFile(q, "probabilities")
	if err != nil {
		return words, err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for _, set := range argValues(q, "set") {
		parameter, value, found := strings.Cut(set, "=")
		at := slices.IndexFunc(lines, func(l string) bool {
			name, _, is := strings.Cut(l, "=")
			return is && strings.TrimSpace(name) == parameter
		})
		if !found || at < 0 {
			return words, &ask.Error{Text: "--set " + strconv.Quote(set) + ", want a parameter of " + q.Text("probabilities") + " and a number, for example n=1000"}
		}
		lines[at] = parameter + " = " + value
	}
	words.Changes = strings.Join(lines, "\n")
	return words, nil
}

// answerForBlock asks the models about the function and the basic block that the question names.
func answerForBlock(r *ask.Run, m *costmodel.Models, words answers.ModelQuestion, q ask.Question) (*answers.Reply, error) {
	reply := m.Answer(words)
	if reply.Problem != "" {
		return nil, &ask.Error{Text: "--probabilities " + q.Text("probabilities") + ": " + strings.TrimSuffix(reply.Problem, ".")}
	}
	for _, pick := range []struct {
		arg, table string
		number     *uint32
	}{{"function", "functions", &words.Function}, {"block", "blocks", &words.Block}} {
		if !q.Given(pick.arg) {
			continue
		}
		t := reply.Table(pick.table)
		at := slices.IndexFunc(t.Rows, func(row []report.Value) bool {
			return r.FunctionName(row[t.Index(pick.arg)].Plain()) == r.FunctionName(q.Text(pick.arg))
		})
		if at < 0 {
			return nil, &ask.Error{Text: "--" + pick.arg + " " + q.Text(pick.arg) + ": there is no " + pick.arg + " with that name"}
		}
		n, _ := t.Rows[at][t.Index("number")].Number()
		*pick.number = uint32(n)
		reply = m.Answer(words)
	}
	return reply, nil
}
