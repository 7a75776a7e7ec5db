// Command beam analyses traces on Apache Beam: profiles of the same bytes as those of
// stackglass analyze, by as many machines as a runner has. README.md says how.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/beam/files"
	"github.com/stackglass/stackglass/tools/beam/pass"
	"github.com/stackglass/stackglass/tools/beam/pool"
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
	workers    = flag.Int("workers", 0, "processes of this machine that do the work, for the runner prism; one that dies is started again (0: this process)")
	measured   = flag.Bool("metrics", false, "print what was sent and how long it took")
	verbose    = flag.Bool("verbose", false, "print what Beam has to say")
)

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `beam --output FOLDER [options] TRACE.sgt…

Analyses traces on Apache Beam. A TRACE is a name or a pattern of any file system that
Beam knows: /data/*.sgt, gs://bucket/run/rank-*.sgt, s3://bucket/x.sgt.

`)
	flag.PrintDefaults()
}

func main() {
	pool.Child() // does not return in a worker process
	flag.Usage = usage
	flag.Parse()
	beam.Init() // where workers of other runners begin
	if !*verbose {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // the error comes back all the same
		log.SetLogger(lastWords{})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	partial, err := run(ctx, flag.Args())
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted:
		fmt.Fprintln(os.Stderr, goesOn(*workspace))
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", ownWords(err))
		os.Exit(1)
	case partial:
		os.Exit(exitInput)
	}
}

// lastWords prints what Beam says before it ends the process itself, and else nothing.
type lastWords struct{}

func (lastWords) Log(_ context.Context, severity log.Severity, _ int, text string) {
	if severity == log.SevFatal {
		fmt.Fprintln(os.Stderr, "error:", strings.TrimSpace(text))
	}
}

// Exit codes, those of the command: for traces that have profiles of a part only, and
// where the user ended the job.
const (
	exitInput       = 3
	exitInterrupted = 130
)

// goesOn is what to tell whoever has ended a job.
func goesOn(workspace string) string {
	if workspace == "" {
		return "interrupted: traces without a profile have to be analysed again; with --workspace FOLDER a job goes on from what was done"
	}
	return "interrupted: the same command goes on from what is in " + workspace
}

// ownWords are what a step of the pipeline said. Beam puts around it where that was.
func ownWords(err error) string {
	text := strings.TrimSpace(err.Error())
	if *verbose {
		return text
	}
	if i := strings.LastIndex(text, " failed:\n"); i >= 0 {
		text = strings.TrimSpace(text[i+len(" failed:\n"):])
	}
	return text
}

// run analyses traces; partial tells that there are profiles of parts only.
func run(ctx context.Context, patterns []string) (partial bool, err error) {
	o, err := options()
	if err != nil {
		return false, err
	}
	if len(patterns) == 0 {
		return false, errors.New("no trace is named; beam --help tells more")
	}
	traces, err := files.Expand(ctx, patterns)
	if err != nil {
		return false, err
	}
	most, err := pass.Check(ctx, traces, &o)
	if err != nil {
		return false, err
	}
	if *workers > 0 {
		if name := flag.Lookup("runner").Value.String(); name != "" && name != "prism" {
			return false, fmt.Errorf("--workers %d are processes of this machine, for Beam's runner prism, and --runner is %s, which has its own", *workers, name)
		}
		p, err := pool.Start(ctx, pool.Options{Workers: *workers})
		if err != nil {
			return false, err
		}
		defer p.Close()
		p.Use()
	}
	p, s := beam.NewPipelineWithRoot()
	pass.Build(s, traces, most, o)
	result, err := beamx.RunWithMetrics(ctx, p)
	if err != nil {
		return false, err
	}
	if *measured && result != nil {
		d := report.Document{Tables: []report.Table{measures(result.Metrics().AllMetrics())}}
		if err := d.Write(os.Stdout, report.Text); err != nil {
			return false, err
		}
		fmt.Println()
	}
	return tell(ctx, o.Output)
}

// options are those of the command line.
func options() (pass.Options, error) {
	o := pass.Options{
		Analyses: *analyses, References: *references, MostLines: *mostLines, PatienceMS: patience.Milliseconds(),
		FanIn: *fanIn, Lanes: *lanes, Workspace: *workspace, Temporary: *temporary, Output: *output,
	}
	if o.Lanes == 0 {
		o.Lanes = max(1, *workers)
	}
	switch {
	case *workers < 0:
		return o, fmt.Errorf("--workers %d: want a number of processes, or 0 for this one", *workers)
	case *patience < 0 || *patience%time.Millisecond != 0:
		return o, fmt.Errorf("--patience %v: want a time in whole milliseconds, or 0 for any time", *patience)
	}
	for _, one := range strings.Split(*lines, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(one), 10, 32)
		if err != nil {
			return o, fmt.Errorf("--lines %s: want numbers of bytes, separated by commas", *lines)
		}
		o.LineBytes = append(o.LineBytes, uint32(n))
	}
	return o, nil
}

// tell prints the report that the job has left, and what it warns of to standard error.
func tell(ctx context.Context, output string) (partial bool, err error) {
	text, found, err := files.Read(ctx, files.Join(output, "report.txt"))
	if err != nil || !found {
		return false, err // the runner does not wait for the job
	}
	if _, err := os.Stdout.Write(text); err != nil {
		return false, err
	}
	content, _, err := files.Read(ctx, files.Join(output, "report.json"))
	var told struct{ Warnings []string }
	if err == nil {
		err = json.Unmarshal(content, &told)
	}
	for _, w := range told.Warnings {
		fmt.Fprintln(os.Stderr, "warning:", w)
	}
	return len(told.Warnings) > 0, err
}

// measures has what the steps of the pipeline counted, over all of them.
func measures(m metrics.QueryResults) report.Table {
	t := report.Table{Key: "metrics", Title: "What was done", Columns: []report.Column{
		{Key: "what", Label: "what"}, {Key: "times", Label: "times"}, {Key: "sum", Label: "sum"}, {Key: "most", Label: "most"},
	}}
	counts, spread := map[string]int64{}, map[string]metrics.DistributionValue{}
	for _, c := range m.Counters() {
		if c.Key.Namespace == pass.Namespace {
			counts[c.Key.Name] += c.Result()
		}
	}
	for _, d := range m.Distributions() {
		if d.Key.Namespace == pass.Namespace {
			all, one := spread[d.Key.Name], d.Result()
			spread[d.Key.Name] = metrics.DistributionValue{Count: all.Count + one.Count, Sum: all.Sum + one.Sum, Max: max(all.Max, one.Max)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Add(report.TextOf(name), report.None(), report.Count(uint64(counts[name])), report.None())
	}
	for _, name := range slices.Sorted(maps.Keys(spread)) {
		d := spread[name]
		t.Add(report.TextOf(name), report.Count(uint64(d.Count)), report.Count(uint64(d.Sum)), report.Count(uint64(d.Max)))
	}
	return t
}
