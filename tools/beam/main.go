// Command beam analyses traces with Apache Beam, on as many machines as a runner offers. The
// profiles equal those of stackglass analyze, byte for byte. README.md explains the method and the
// options.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/metrics"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/beam/files"
	"github.com/stackglass/stackglass/tools/beam/pass"
	"github.com/stackglass/stackglass/tools/beam/pool"
)

var (
	output     = flag.String("output", "", "the folder for the profiles and the report, in any file system that Beam supports")
	analyses   = flag.String("analyses", "default", "the analyses, as in stackglass analyze")
	sampled    = flag.String("sample", "", "analyse only a sample of each trace, as in stackglass analyze; a worker analyses each sample, because samples cannot be divided")
	seed       = flag.Uint64("sample-seed", 0, "choose the random sample with this seed")
	lines      = flag.String("lines", "64", "cache line sizes in bytes, separated by commas")
	references = flag.Uint64("references", 0, "approximate number of references in a segment (0: a quarter of the job's references for each worker, between 1,048,576 and 67,108,864; one worker, or an unknown number: 67,108,864)")
	mostLines  = flag.Uint64("segment-lines", pass.DefaultMostLines, "approximate maximum of distinct lines in a segment; a segment with more lines is divided")
	patience   = flag.Duration("patience", 10*time.Minute, "time after which the rest of a segment goes to another worker; 0: never")
	fanIn      = flag.Int("fan-in", pass.DefaultFanIn, "number of neighbouring segments that are joined at once")
	lanes      = flag.Int("lanes", 0, "number of branches of the pipeline, for runners that process a collection in one bundle (0: 4 for each of --workers, but at least 1)")
	workspace  = flag.String("workspace", "", "a folder that all workers can write to; it stores segments, so that an interrupted job can be resumed")
	mostInline = flag.Uint64("message-bytes", pass.DefaultMostInline, "largest segment that is sent through the runner; larger segments are stored in --workspace, or in --output, until the job ends")
	partBytes  = flag.Uint64("part-bytes", pass.DefaultPartBytes, "approximate size of the parts in which traces in other formats are converted to .sgt")
	temporary  = flag.String("temporary", "", "the folder to which a worker copies traces that are not files of its machine (default: the system's temporary folder)")
	workers    = flag.Int("workers", 0, "number of worker processes on this machine, for the runner prism; a process that dies is replaced (0: work in this process)")
	measured   = flag.Bool("metrics", false, "print the progress every 5 seconds to standard error (with the runner prism), and the bytes sent and the times at the end")
	verbose    = flag.Bool("verbose", false, "print Beam's own messages")
)

func usage() {
	fmt.Fprint(flag.CommandLine.Output(), `beam --output FOLDER [options] TRACE…

Analyses traces on Apache Beam, in every format that stackglass analyze reads. TRACE is a name or a pattern in any file system that Beam
supports, such as /data/*.sgt, gs://bucket/run/rank-*.sgt or s3://bucket/x.sgt.

`)
	flag.PrintDefaults()
}

func main() {
	pool.Child() // does not return in a worker process
	flag.Usage = usage
	flag.Parse()
	beam.Init() // workers of other runners start here
	if !*verbose {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // run returns the error anyway
		log.SetLogger(lastWords{})
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	partial, err := run(ctx, flag.Args())
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted:
		fmt.Fprintln(os.Stderr, resumption(*workspace))
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", ownWords(err))
		os.Exit(1)
	case partial:
		os.Exit(exitInput)
	}
}

// lastWords prints Beam's message before Beam ends the process, and no other message.
type lastWords struct{}

func (lastWords) Log(_ context.Context, severity log.Severity, _ int, text string) {
	if severity == log.SevFatal {
		fmt.Fprintln(os.Stderr, "error:", strings.TrimSpace(text))
	}
}

// Exit codes, as in the command.
const (
	exitInput       = 3   // the profile of a trace is partial
	exitInterrupted = 130 // the user interrupted the job
)

// resumption returns a message that says how to resume an interrupted job.
func resumption(workspace string) string {
	if workspace == "" {
		return "interrupted: traces without a profile have to be analysed again; add --workspace FOLDER to be able to resume a job"
	}
	return "interrupted: run the same command again to resume the job with the segments in " + workspace
}

// ownWords returns the error of a step of the pipeline without Beam's description of the step.
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

// answerTime is the time within which a job server must answer. Beam itself would wait for minutes.
var answerTime = 10 * time.Second

// reachable returns an error if no job server answers at an address. A server that accepts
// connections, but does not speak gRPC, is not a job server.
func reachable(ctx context.Context, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	address := strings.TrimPrefix(strings.TrimPrefix(endpoint, "http://"), "https://")
	if err := answers(ctx, address); err != nil {
		return fmt.Errorf("--endpoint %s: no job server answers there (%w); start the job server, or correct the address", endpoint, err)
	}
	return nil
}

func answers(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	connection.Close()
	client, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer client.Close()
	client.Connect()
	for state := client.GetState(); state != connectivity.Ready; state = client.GetState() {
		if state == connectivity.TransientFailure || !client.WaitForStateChange(ctx, state) {
			return errors.New("a program accepts connections, but does not answer like a job server")
		}
	}
	return nil
}

// run analyses traces. partial reports whether a profile covers only a part of its trace.
func run(ctx context.Context, patterns []string) (partial bool, err error) {
	o, err := options()
	if err != nil {
		return false, err
	}
	if len(patterns) == 0 {
		return false, errors.New("give a trace, as in: beam --output profiles app.sgt; see beam --help")
	}
	traces, err := files.Expand(ctx, patterns)
	if err != nil {
		return false, err
	}
	if endpoint := flag.Lookup("endpoint"); endpoint != nil {
		if err := reachable(ctx, endpoint.Value.String()); err != nil {
			return false, err
		}
	}
	// The folder is removed after the workers have ended, because they write to it. The context ends if
	// the user interrupts the job.
	o, remove := o.Temporarily()
	defer func() {
		if err != nil || !*jobopts.Async {
			err = errors.Join(err, remove(context.WithoutCancel(ctx)))
		}
	}()
	runner := flag.Lookup("runner").Value.String()
	local := runner == "" || runner == "prism"
	switch {
	case *workers > 0 && !local:
		return false, fmt.Errorf("--workers %d: the runner %s has its own workers; leave --workers out, or use the runner prism", *workers, runner)
	case *workers > 0:
		p, err := pool.Start(ctx, pool.Options{Workers: *workers, Bundles: 1})
		if err != nil {
			return false, err
		}
		defer p.Close()
		defer p.Use()()
	case jobopts.IsLoopback() || local && *jobopts.EnvironmentType == "":
		stop, err := pool.Loopback(ctx)
		if err != nil {
			return false, err
		}
		defer stop()
	}
	if err := convertAll(ctx, traces, o); err != nil {
		return false, err
	}
	load, err := pass.Check(ctx, traces, &o)
	if err != nil {
		return false, err
	}
	if *measured {
		stop := show(os.Stderr, load.References)
		defer stop()
	}
	p, s := beam.NewPipelineWithRoot()
	pass.Build(s, traces, load, o)
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

// convertAll converts traces that are not containers.
func convertAll(ctx context.Context, traces []string, o pass.Options) error {
	tasks, converts, err := pass.Conversions(ctx, traces, &o)
	if err != nil || len(tasks) == 0 {
		return err
	}
	if *jobopts.Async {
		return errors.New("--async: traces that are not .sgt containers are converted by a first job, for which this program must wait; leave --async out, or convert the traces with stackglass convert")
	}
	fmt.Fprintf(os.Stderr, "converting %d of %d traces to .sgt containers, in %d parts\n", converts, len(traces), len(tasks))
	p, s := beam.NewPipelineWithRoot()
	pass.BuildConversion(s, tasks, o)
	_, err = beamx.RunWithMetrics(ctx, p)
	return err
}

// options returns the options of the command line.
func options() (pass.Options, error) {
	o := pass.Options{
		Analyses: *analyses, Sample: *sampled, Seed: *seed, References: *references, Workers: *workers, MostLines: *mostLines, PatienceMS: patience.Milliseconds(),
		FanIn: *fanIn, Lanes: *lanes, MostInline: *mostInline, PartBytes: *partBytes, Workspace: *workspace, Temporary: *temporary, Output: *output,
	}
	if o.Lanes == 0 {
		o.Lanes = max(1, pass.Parts**workers)
	}
	switch {
	case *workers < 0:
		return o, fmt.Errorf("--workers %d: want a number of processes, or 0 to work in this process", *workers)
	case *patience < 0 || *patience%time.Millisecond != 0:
		return o, fmt.Errorf("--patience %v: want a time in whole milliseconds, or 0 for no limit", *patience)
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

// tell prints the job's report, and its warnings to standard error.
func tell(ctx context.Context, output string) (partial bool, err error) {
	text, found, err := files.Read(ctx, files.Join(output, "report.txt"))
	if err != nil || !found {
		return false, err // runners that do not wait for the job have no report yet
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

// measures returns the counters and distributions of all steps of the pipeline.
func measures(m metrics.QueryResults) report.Table {
	t := report.Table{Key: "metrics", Title: "Metrics", Columns: []report.Column{
		{Key: "what", Label: "metric"}, {Key: "times", Label: "times"}, {Key: "sum", Label: "sum"}, {Key: "most", Label: "maximum"},
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
