// Pipelines generates the processor descriptions of core/pipeline from llvm-mca's tables, and
// compares the model's answers with llvm-mca's and with measured times.
//
//	pipelines describe DIR         writes a description of each supported processor
//	pipelines tune DIR PROCESSOR   measures latencies and throughputs on this machine, which must
//	                               have this processor, and writes a description that contains them
//	pipelines memory DIR PROCESSOR   does the same only for the memory levels
//	pipelines runtimes FILE        writes a page that compares predicted run times of kernels, at
//	                               several sizes, with times measured on this machine
//	pipelines compare [PROCESSOR [MARCH]]   prints the times of loop bodies according to the model,
//	                               to llvm-mca and, if this machine has this processor, to a
//	                               measurement; the code is compiled for the processor, or
//	                               with -march=MARCH, such as x86-64
//	pipelines scaling              prints run times with larger inputs, as predicted from small
//	                               inputs and as measured on this machine
//
// Run this command in the root folder of the repository.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
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
		return measureProcessor(args[1], loopsDir, args[2])
	case len(args) == 3 && args[0] == "memory":
		return measureMemory(args[1], loopsDir, args[2])
	case len(args) == 2 && args[0] == "runtimes":
		return writeRuntimes(args[1], loopsDir)
	case len(args) == 1 && args[0] == "scaling":
		return compareScaled(os.Stdout, host())
	case len(args) == 1 && args[0] == "compare":
		machine := host()
		if _, err := targetOf(machine); err != nil {
			fmt.Println("There is no description of this machine, so nothing was measured")
			machine = "sapphirerapids"
		}
		return compareAll(os.Stdout, loopsDir, machine, "", machine == host())
	case len(args) == 2 && args[0] == "compare":
		return compareAll(os.Stdout, loopsDir, args[1], "", args[1] == host())
	case len(args) == 3 && args[0] == "compare":
		return compareAll(os.Stdout, loopsDir, args[1], args[2], args[1] == host())
	}
	return fmt.Errorf("unknown arguments %q; want describe DIR, tune DIR PROCESSOR, memory DIR PROCESSOR, runtimes FILE, scaling, or compare", args)
}

// host returns LLVM's name for this machine's processor.
func host() string {
	out, err := exec.Command(mcaProgram, "--version").Output()
	if err != nil {
		return ""
	}
	_, name, _ := strings.Cut(string(out), "Host CPU: ")
	name, _, _ = strings.Cut(name, "\n")
	info, _ := os.ReadFile("/proc/cpuinfo") // if the file is missing, LLVM's name is used
	return hostOf(strings.TrimSpace(name), string(info))
}

// hostOf corrects the name of a processor. LLVM derives the name from the family and the model. A
// virtual machine may hide the model of its processor, but the instruction sets show that the
// processor is newer: Sapphire Rapids is Intel's first processor with matrix tiles (AMX). Emerald
// Rapids has the same core.
func hostOf(name, cpuinfo string) string {
	older := slices.Contains([]string{"icelake-client", "icelake-server", "rocketlake", "tigerlake", "emeraldrapids"}, name)
	if older && strings.Contains(cpuinfo, "GenuineIntel") && strings.Contains(cpuinfo, " amx_tile ") {
		return "sapphirerapids"
	}
	return name
}

func targetOf(name string) (*target, error) {
	for i := range targets {
		if targets[i].name == name {
			return &targets[i], nil
		}
	}
	return nil, fmt.Errorf("no description can be generated for the processor %q", name)
}
