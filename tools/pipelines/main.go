// Pipelines makes the processor descriptions of core/pipeline from llvm-mca's tables, and compares
// the model's answers with llvm-mca's and with measured times.
//
//	pipelines describe DIR         writes a description for each processor it knows
//	pipelines tune DIR PROCESSOR   writes another one, with what this machine's latencies
//	                               and throughputs are where they differ; it must be that processor
//	pipelines memory DIR PROCESSOR   the same of its memory alone
//	pipelines runtimes FILE        writes a page that compares runtimes of kernels at several
//	                               sizes with what this machine takes
//	pipelines compare [PROCESSOR [MARCH]]   prints loop bodies' times by the model, by llvm-mca,
//	                               and, where the machine at hand is that processor, as measured;
//	                               of code for it, or made with -march=MARCH, such as x86-64
//	pipelines scaling              prints runtimes at larger inputs, predicted from small ones,
//	                               and as measured on the machine at hand
//
// It is run in the folder of the repository.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const (
	mcaProgram   = "llvm-mca-19"
	clangProgram = "clang-19"
	loopsDir     = "tools/pipelines/testdata"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pipelines:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "describe":
		return writeDescriptions(args[1])
	case len(args) == 3 && args[0] == "tune":
		return tune(args[1], loopsDir, args[2])
	case len(args) == 3 && args[0] == "memory":
		return remeasure(args[1], loopsDir, args[2])
	case len(args) == 2 && args[0] == "runtimes":
		return writeRuntimes(args[1], loopsDir)
	case len(args) == 1 && args[0] == "scaling":
		return compareScaled(os.Stdout, host())
	case len(args) == 1 && args[0] == "compare":
		machine := host()
		if _, err := targetOf(machine); err != nil {
			fmt.Println("The machine at hand is none of those that have a description: nothing is measured")
			machine = "sapphirerapids"
		}
		return compareAll(os.Stdout, loopsDir, machine, "", machine == host())
	case len(args) == 2 && args[0] == "compare":
		return compareAll(os.Stdout, loopsDir, args[1], "", args[1] == host())
	case len(args) == 3 && args[0] == "compare":
		return compareAll(os.Stdout, loopsDir, args[1], args[2], args[1] == host())
	}
	return fmt.Errorf("%q, want: describe DIR, tune DIR PROCESSOR, memory DIR PROCESSOR, runtimes FILE, scaling, or compare", args)
}

// host is LLVM's name for this machine.
func host() string {
	out, err := exec.Command(mcaProgram, "--version").Output()
	if err != nil {
		return ""
	}
	_, name, _ := strings.Cut(string(out), "Host CPU: ")
	name, _, _ = strings.Cut(name, "\n")
	return strings.TrimSpace(name)
}

func targetOf(name string) (*target, error) {
	for i := range targets {
		if targets[i].name == name {
			return &targets[i], nil
		}
	}
	return nil, fmt.Errorf("no processor %q among those that descriptions are made of", name)
}
