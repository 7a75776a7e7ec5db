// Package pool runs the bundles of a Beam pipeline in several worker processes
// on this machine, and repeats a bundle whose process dies.
//
// # Why
//
// Beam's local runner, Prism, asks for one SDK worker per environment and
// fails the whole job when a bundle fails, which it also does when its worker
// goes away. The Go SDK's own answer (loopback) is that one worker as a
// goroutine of the launcher. This package puts a router in between. For Prism
// the router is the one worker; for its own child processes it is the runner:
//
//	launcher process                                   worker processes
//	┌───────────────────────────────┐
//	│ pipeline ── Prism ◄─Fn API─► router ◄─Fn API─► worker 0
//	│                               │      ◄───────► worker 1
//	└───────────────────────────────┘      ◄───────► …
//
// Both sides speak the Fn API (https://s.apache.org/beam-fn-api), the gRPC
// protocol between a Beam runner and its SDK workers, all over 127.0.0.1.
//
// # Use
//
//	func main() {
//		pool.Child() // does not return in a worker process
//		flag.Parse()
//		beam.Init()
//		p, err := pool.Start(ctx, pool.Options{Workers: 4})
//		...
//		defer p.Close()
//		p.Use() // or --environment_type=EXTERNAL --environment_config=<p.Endpoint()>
//		prism.Execute(ctx, pipeline)
//	}
//
// A worker is the same program again. The DoFns and types that init functions
// register are there in both; the pipeline options come over the protocol.
// Nothing else of the launcher's memory does: a DoFn that captures a variable
// of the launcher does not see it.
//
// # A bundle's way
//
// A bundle is the unit of work and of failure: some input elements, run through
// the fused DoFns of one stage. Prism numbers bundles, runs at most eight at a
// time, and puts a whole collection into one, so parallel work needs parallel
// branches of the pipeline.
//
//  1. Prism sends a ProcessBundle instruction on the control stream and the
//     elements on the data stream, in no fixed order. The router keeps both
//     until the bundle is answered.
//  2. The instruction goes to the live worker with the fewest bundles, and the
//     elements follow. At the start of a job the router waits until every
//     process has connected, or the first one would get everything.
//  3. The worker asks for the stage's plan (ProcessBundleDescriptor). It gets
//     Prism's, with the endpoints in it replaced by the router's.
//  4. What the worker sends back is held. It is whole when the response is
//     there and each output stream has ended; these are different connections.
//     Then output and response go to Prism together.
//
// # When a worker dies
//
// Its process ends, or one of its streams breaks and the process is killed.
// Its open bundles lose their held output and start again at step 2 elsewhere;
// a new process takes its place. Prism sees nothing of the dead attempt, so
// each element counts once, in the output and in the metrics. This needs what
// Beam asks of every DoFn: to be repeatable, and to keep its outside effects
// idempotent (write a temporary file, then rename it).
//
// A bundle that has lost four workers is answered with an error that names
// their ends. A bundle whose DoFn returns an error or panics is answered with
// that error at once: it would fail again.
//
// # What is different from one worker
//
//   - Splits are declined. A split fixes where a bundle ends by what its worker
//     has read at that moment. A second attempt on another worker could not end
//     there.
//   - Metrics are renumbered; see shortIDs.
//   - User state is written to Prism while the bundle runs and cannot be taken
//     back. A bundle that has written state and loses its worker fails with an
//     error. Reads, which are how side inputs come, are repeatable.
//   - The input of an open bundle and its output are held in the launcher's
//     memory, besides Prism's own copies.
//   - Workers end by SIGKILL. They hold nothing that matters outside a bundle.
//
// Workers end with the launcher in any case: on Linux the kernel sees to it,
// and elsewhere a worker ends when its control connection breaks.
package pool
