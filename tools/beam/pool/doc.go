// Package pool runs the bundles of a Beam pipeline in several worker processes on this machine. If
// a process dies, its bundles are repeated.
//
// # Why
//
// Beam's local runner, Prism, asks for one SDK worker per environment. It fails the whole job if a
// bundle fails, and a bundle fails if its worker dies. The Go SDK's loopback mode runs this one
// worker as a goroutine of the launcher. This package inserts a router. To Prism, the router is the
// one worker; to its own child processes, it is the runner:
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
//		defer p.Use()() // or --environment_type=EXTERNAL --environment_config=<p.Endpoint()>
//		prism.Execute(ctx, pipeline)
//	}
//
// A worker is another process with the same program. The DoFns and types that init functions
// register exist in both; the pipeline options are sent over the protocol. Nothing else in the
// launcher's memory is sent: a DoFn cannot use a captured variable of the launcher.
//
// # How a bundle is processed
//
// A bundle is the unit of work and of failure: some input elements, processed by the fused DoFns of
// one stage. Prism numbers bundles, runs at most eight at a time, and puts a whole collection into
// one bundle, so parallel work needs parallel branches of the pipeline.
//
//  1. Prism sends a ProcessBundle instruction on the control stream and the
//     elements on the data stream, in no fixed order. The router keeps both until the bundle is
//     finished.
//  2. The instruction goes to the live worker with the fewest bundles, and the
//     elements follow. If every worker has as many bundles as the option Bundles permits, the
//     bundle waits. At the start of a job, the router waits until every process has connected,
//     because otherwise the first process would get all bundles.
//  3. The worker asks for the stage's plan (ProcessBundleDescriptor). The router returns Prism's
//     plan, with Prism's endpoints replaced by its own.
//  4. The router holds the worker's output until it is complete: the response has arrived, and each
//     output stream has ended. (These use different connections.) Then it sends output and response
//     to Prism together.
//
// # When a worker dies
//
// A worker dies when its process ends, or when one of its streams breaks and the router kills the
// process. The held output of its open bundles is discarded, the bundles restart at step 2 in other
// workers, and a new process replaces the dead one. Prism does not see the failed attempt, so each
// element counts once, in the output and in the metrics. As Beam requires, every DoFn must be
// repeatable, and its external effects must be idempotent (for example, write a temporary file,
// then rename it).
//
// A bundle that has lost four workers fails with an error that says how each of them ended, and on
// what it worked (see Report). A
// bundle whose DoFn returns an error or panics fails with that error at once, because it would fail
// again.
//
// # Differences from a single worker
//
//   - Splits are declined. A split determines where a bundle ends from what its worker has read at
//     that moment. A second attempt on another worker could not end at the same element.
//   - Metrics are renumbered; see shortIDs.
//   - User state is written to Prism while the bundle runs, and cannot be undone. A bundle that has
//     written state and loses its worker fails with an error. Reads, which also provide side
//     inputs, are repeatable.
//   - The input and the output of an open bundle are held in the launcher's memory, in addition to
//     Prism's own copies.
//   - Workers are ended with SIGKILL. They contain nothing that matters outside a bundle.
//
// Workers always end when the launcher ends: on Linux, the kernel ends them, and on other systems,
// a worker ends when its control connection breaks.
package pool
