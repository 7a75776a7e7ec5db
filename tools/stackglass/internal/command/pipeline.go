package command

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// blocks can print a branch-probability file, and samples executions while it reads a trace.
func (a *app) blocks(cmd *cobra.Command, o *asking) {
	hideSample(cmd)
	var sampled *branches.WindowSampler
	template := cmd.Flags().Bool("template", false, "print all branches and what is known of them, for --probabilities, and nothing else")
	o.check = func(q ask.Question) error {
		if q.Is("windows") {
			o.r.besides = func(program func() *trace.Program) func(*trace.Batch) error {
				sampled = branches.NewWindowSampler(analysis.DefaultLineBytes, q.Number("window-seed"), program)
				return sampled.Consume
			}
		}
		return nil
	}
	o.prepare = func(_ *answerable, run *ask.Run) error {
		if sampled != nil {
			run.Windows = sampled.Result()
		}
		return nil
	}
	o.instead = func(run *ask.Run, q ask.Question) (bool, error) {
		if !*template {
			return false, nil
		}
		text, err := program.BranchFile(run, q)
		if err != nil {
			return true, err
		}
		return true, a.write(text)
	}
}

func (a *app) pipeline(cmd *cobra.Command, _ *asking) {
	hideSample(cmd)
	completeFiles(cmd, "processor", pipeline.Processors())
}

// loadModule reads LLVM IR.
func (r *reading) loadModule(in *pass.Input) (*answerable, error) {
	if option := r.changed(slices.Concat(traceOptions, []string{"workers", "memory", "windows"})...); option != "" {
		return nil, usagef("--", option, ": ", in.Name, " is LLVM IR, which has no references; leave the option out")
	}
	text, err := io.ReadAll(in)
	return &answerable{Result: &pass.Result{}, name: in.Name, module: text}, err
}

// chosenProcessor returns a known processor, or one that a file describes.
func chosenProcessor(name string) (*pipeline.Processor, error) {
	p, err := program.Processor(&ask.Run{File: readFile}, ask.New(program.Pipeline).With("processor", name))
	return p, asUsage(err)
}
