// Command beam analyses traces on Apache Beam: profiles of the same bytes as those of
// stackglass analyze, by as many machines as a runner has. README.md says how.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/stackglass/stackglass/tools/beam/files"
	"github.com/stackglass/stackglass/tools/beam/pass"
)

var (
	output     = flag.String("output", "", "the folder for the profiles and the report, of any file system")
	analyses   = flag.String("analyses", "default", "what to analyse, as with stackglass analyze")
	lines      = flag.String("lines", "64", "cache line sizes in bytes, separated by commas")
	references = flag.Uint64("references", pass.DefaultReferences, "references in a stretch, about")
	mostLines  = flag.Uint64("segment-lines", pass.DefaultMostLines, "distinct lines in a segment, about; more make it several")
	patience   = flag.Duration("patience", 10*time.Minute, "how long a stretch may take before others get what is left of it; 0: any time")
	fanIn      = flag.Int("fan-in", pass.DefaultFanIn, "neighbours that are joined at once")
	lanes      = flag.Int("lanes", 0, "branches of the pipeline, for runners that put a collection into one bundle (0: as many as there are workers here, else 1)")
	workspace  = flag.String("workspace", "", "a folder that all workers can write to, where segments are kept, so that a job can be started again and go on")
	temporary  = flag.String("temporary", "", "where a worker copies traces that are not files of its machine (default: the system's folder)")
	summary    = flag.Bool("metrics", false, "print what was sent and how long it took")
)

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `beam --output FOLDER [options] TRACE.sgt…

Analyses traces on Apache Beam. A TRACE is a name or a pattern of any file system that
Beam knows: /data/*.sgt, gs://bucket/run/rank-*.sgt, s3://bucket/x.sgt.

`)
	flag.PrintDefaults()
}

func main() {
	flag.Usage = usage
	flag.Parse()
	beam.Init() // where a worker begins
	if err := run(context.Background(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", strings.TrimSpace(err.Error()))
		os.Exit(1)
	}
}

func run(ctx context.Context, patterns []string) error {
	if len(patterns) == 0 {
		return fmt.Errorf("name the traces; beam --help tells more")
	}
	o := pass.Options{
		Analyses: *analyses, References: *references, MostLines: *mostLines, PatienceMS: patience.Milliseconds(),
		FanIn: *fanIn, Lanes: max(1, *lanes), Workspace: *workspace, Temporary: *temporary, Output: *output,
	}
	for _, one := range strings.Split(*lines, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(one), 10, 32)
		if err != nil {
			return fmt.Errorf("--lines %s: want numbers of bytes, separated by commas", *lines)
		}
		o.LineBytes = append(o.LineBytes, uint32(n))
	}
	traces, err := files.Expand(ctx, patterns)
	if err != nil {
		return err
	}
	most, err := pass.Check(ctx, traces, &o)
	if err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	pass.Build(s, traces, most, o)
	result, err := beamx.RunWithMetrics(ctx, p)
	if err != nil {
		return err
	}
	if *summary && result != nil {
		fmt.Println(result.Metrics())
	}
	return nil
}
