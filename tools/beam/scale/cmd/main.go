// Command cmd writes SCALE.md and its plot from the constants in constants.json, or remeasures
// these constants:
//
//	go run ./scale/cmd                                       in tools/beam: the document
//	go run ./scale/cmd -measure -folder /big -beam ./beam gemm.sgt jacobi2d.sgt sort.sgt
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stackglass/stackglass/tools/beam/scale/document"
	"github.com/stackglass/stackglass/tools/beam/scale/measure"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) > 2 && os.Args[1] == "-part" { // a measurement in a separate process
		v, err := measure.Part(os.Args[2], os.Args[3:])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(v)
	}
	to := flag.String("o", "scale", "the folder of SCALE.md, speedup.svg and constants.json")
	again := flag.Bool("measure", false, "measure the constants, with the .sgt traces given as arguments")
	folder := flag.String("folder", os.TempDir(), "the folder for temporary files, some 2 GB")
	program := flag.String("beam", "", "the program of the pipeline, to measure whole jobs too")
	machine := flag.String("machine", "", "the description of the machine, for the document")
	runs := flag.Int("runs", 3, "the number of runs for each median")
	least := flag.Int("least-bits", 14, "logarithm (base 2) of the smallest number of lines of a pattern")
	most := flag.Int("bits", 23, "logarithm (base 2) of the largest number of lines of a pattern")
	chase := flag.Uint64("chase", 100_000_000, "number of references in the longest trace")
	flag.Parse()
	name := filepath.Join(*to, "constants.json")
	if *again {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o := measure.Options{Self: self, Folder: *folder, Beam: *program, Traces: flag.Args(), Runs: max(1, *runs), Chase: *chase, Log: os.Stderr}
		for bits := *least; bits <= *most; bits += 3 {
			o.Bits = append(o.Bits, bits)
		}
		m, err := measure.Measure(o)
		if err != nil {
			return err
		}
		m.Machine = *machine
		b, err := json.MarshalIndent(m, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, append(b, '\n'), 0o666); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	m := &measure.Measured{}
	if err := json.Unmarshal(content, m); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	files, err := document.Files(m)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(*to, f.Name), f.Content, 0o666); err != nil {
			return err
		}
	}
	return nil
}
