package pool

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// maxLosses is the number of workers a bundle may lose. Without this limit, a bundle that kills
// every worker would be repeated forever. It is also the number of attempts to start a process.
const maxLosses = 4

// restartTime is the delay after the first failed start of a process. It doubles with each further
// failure.
const restartTime = 50 * time.Millisecond

// router connects Prism with the worker processes of one job. To Prism, it is one SDK worker; to
// the worker processes, it is the runner.
type router struct {
	pool *Pool
	id   string // the worker id that Prism gave

	ctx        context.Context // of the streams to Prism, with id in its metadata
	disconnect context.CancelFunc
	gone       chan struct{} // closed when Prism is disconnected
	processes  sync.WaitGroup

	// Prism's services, and the messages to send to them.
	descriptors fnpb.BeamFnControlClient
	provision   fnpb.ProvisionServiceClient
	responses   *queue[*fnpb.InstructionResponse]
	elements    *queue[*fnpb.Elements]
	requests    *queue[*fnpb.StateRequest]
	logs        *queue[*fnpb.LogEntry_List]

	mu       sync.Mutex
	stopping bool                // workers are not started again
	refusal  string              // if not empty, the answer to every bundle
	workers  []*worker           // by slot; nil when the slot is given up
	starts   []int               // failed starts in a row, by slot
	settled  []bool              // by slot: the first process has connected, or the slot is given up
	started  int                 // processes that were ever started, for their ids
	bundles  map[string]*bundle  // not yet answered, by instruction id
	waiting  []*bundle           // ready, but without a worker
	failed   map[string]bool     // answered with an error; input may still come
	asked    map[string]question // the other instructions, not yet answered
	finalize map[string]*worker  // who ran the bundles that want finalization
	stages   map[string]*stage
	metrics  *shortIDs
	calls    map[string]stateCall // state requests without response, by our id
	lastCall int
}

// bundle is a ProcessBundle instruction with everything that is needed to repeat it.
type bundle struct {
	id    string
	req   *fnpb.InstructionRequest // nil until it arrives: elements may arrive earlier
	input []*fnpb.Elements         // all elements and timers so far
	stage *stage

	losses     []string // how the workers that died while running it ended
	wroteState bool     // state was changed at Prism: it must not run again

	// The current attempt.
	worker *worker // nil while the bundle waits for a worker
	output []*fnpb.Elements
	open   map[string]bool // outputs whose last element has not arrived
	resp   *fnpb.InstructionResponse
}

// question is an instruction that a worker must answer.
type question struct {
	worker *worker
	req    *fnpb.InstructionRequest
}

// stateCall identifies the recipient of the response to a state request.
type stateCall struct {
	worker *worker
	id     string // the worker's own id of the request
}

func newRouter(p *Pool, id string) *router {
	ctx, cancel := context.WithCancel(grpcx.WriteWorkerID(context.Background(), id))
	return &router{
		pool: p, id: id, ctx: ctx, disconnect: cancel, gone: make(chan struct{}),
		responses: newQueue[*fnpb.InstructionResponse](),
		elements:  newQueue[*fnpb.Elements](),
		requests:  newQueue[*fnpb.StateRequest](),
		logs:      newQueue[*fnpb.LogEntry_List](),
		workers:   make([]*worker, p.opt.Workers),
		starts:    make([]int, p.opt.Workers),
		settled:   make([]bool, p.opt.Workers),
		bundles:   map[string]*bundle{},
		failed:    map[string]bool{},
		asked:     map[string]question{},
		finalize:  map[string]*worker{},
		stages:    map[string]*stage{},
		metrics:   newShortIDs(),
		calls:     map[string]stateCall{},
	}
}

// start connects to Prism as the worker of req and starts the processes. The
// router ends when Prism closes the control stream, or with disconnect.
func (r *router) start(req *fnpb.StartWorkerRequest) error {
	var conns []*grpc.ClientConn
	end := func() {
		r.disconnect()
		r.stopWorkers()
		for _, conn := range conns {
			conn.Close()
		}
		r.pool.forget(r)
		close(r.gone)
	}
	for _, endpoint := range []string{req.GetControlEndpoint().GetUrl(), req.GetLoggingEndpoint().GetUrl(), req.GetProvisionEndpoint().GetUrl()} {
		conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)))
		if err != nil {
			end()
			return fmt.Errorf("pool: connecting to the runner at %q: %w", endpoint, err)
		}
		conns = append(conns, conn)
	}
	r.descriptors = fnpb.NewBeamFnControlClient(conns[0])
	r.provision = fnpb.NewProvisionServiceClient(conns[2])
	go func() {
		defer end()
		if err := r.talk(conns[0], conns[1]); err != nil && r.ctx.Err() == nil {
			fmt.Fprintf(r.pool.opt.Stderr, "pool: the connection to the runner broke: %v\n", err)
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	for slot := range r.workers {
		r.startWorker(slot)
	}
	return nil
}

// talk carries the messages between Prism and the router until Prism closes
// the control stream.
func (r *router) talk(runner, logging *grpc.ClientConn) error {
	control, err := r.descriptors.Control(r.ctx)
	if err != nil {
		return err
	}
	data, err := fnpb.NewBeamFnDataClient(runner).Data(r.ctx)
	if err != nil {
		return err
	}
	state, err := fnpb.NewBeamFnStateClient(runner).State(r.ctx)
	if err != nil {
		return err
	}
	logs, err := fnpb.NewBeamFnLoggingClient(logging).Logging(r.ctx)
	if err != nil {
		return err
	}
	// If another stream breaks while the control stream works, Prism would wait forever, so the
	// failure is reported on the control stream.
	watch := func(name string, run func() error) {
		if err := run(); err != nil && err != io.EOF && r.ctx.Err() == nil {
			r.abort(fmt.Sprintf("pool: the %s connection to the runner broke: %v", name, err))
		}
	}
	go watch("control", func() error { return r.responses.pump(r.ctx, control.Send) })
	go watch("data", func() error { return r.elements.pump(r.ctx, data.Send) })
	go watch("state", func() error { return r.requests.pump(r.ctx, state.Send) })
	go r.logs.pump(r.ctx, logs.Send) // logs may be lost
	go watch("data", func() error { return receive(data.Recv, r.input) })
	go watch("state", func() error { return receive(state.Recv, r.stateResponse) })
	if err := receive(control.Recv, r.instruction); err != io.EOF {
		return err
	}
	return nil
}

func receive[T any](recv func() (T, error), handle func(T)) error {
	for {
		x, err := recv()
		if err != nil {
			return err
		}
		handle(x)
	}
}

// abort answers every current and later bundle with an error, so that Prism ends the job.
func (r *router) abort(text string) {
	r.mu.Lock()
	r.stopping = true
	r.refuse(text)
	r.mu.Unlock()
	r.stopWorkers()
	time.AfterFunc(partingTime, r.disconnect)
}

// refuse needs r.mu.
func (r *router) refuse(text string) {
	if r.refusal == "" {
		r.refusal = text
	}
	r.waiting = nil
	for _, b := range r.bundles {
		if b.req != nil {
			r.fail(b, r.refusal)
		}
	}
}

// wait returns when the processes have gone and Prism is disconnected.
func (r *router) wait() {
	r.processes.Wait()
	<-r.gone
}

// stopWorkers ends the processes. They are killed, because a worker contains only its open bundles,
// which the runner no longer needs.
func (r *router) stopWorkers() {
	r.mu.Lock()
	r.stopping = true
	workers := slices.Clone(r.workers)
	r.mu.Unlock()
	for _, w := range workers {
		if w != nil {
			w.kill()
		}
	}
	r.processes.Wait()
}

// Worker processes.

// startWorker starts a process for the slot. It needs r.mu.
func (r *router) startWorker(slot int) {
	if r.stopping {
		return
	}
	r.started++
	w := &worker{
		router: r, slot: slot, id: fmt.Sprintf("%s.%d.%s", r.id, r.started, r.pool.secret),
		control: newQueue[*fnpb.InstructionRequest](),
		data:    newQueue[*fnpb.Elements](),
		state:   newQueue[*fnpb.StateResponse](),
		active:  map[string]*bundle{},
	}
	r.workers[slot] = w
	r.pool.know(w)
	r.processes.Add(1)
	go func() {
		defer r.processes.Done()
		end := w.run(r.pool.opt)
		r.pool.unknow(w)
		r.lost(w, end)
	}()
}

// connected is called when a process opens its control stream.
func (r *router) connected(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.ended {
		return
	}
	w.met, w.live = true, true
	r.starts[w.slot], r.settled[w.slot] = 0, true
	r.dispatchWaiting()
}

func (r *router) hasMet(w *worker) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.met
}

// lost is called when a process has ended. A new one takes its place and its
// bundles go to other workers, as if they had never run.
func (r *router) lost(w *worker, end string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.live, w.ended = false, true
	if r.stopping {
		return
	}
	r.replace(w, end)
	for id, call := range r.calls {
		if call.worker == w {
			delete(r.calls, id)
		}
	}
	for id, runner := range r.finalize {
		if runner == w {
			delete(r.finalize, id)
		}
	}
	for id, q := range r.asked {
		if q.worker == w {
			delete(r.asked, id)
			r.unanswered(q.req, end)
		}
	}
	bundles := slices.SortedFunc(maps.Values(w.active), func(a, b *bundle) int { return strings.Compare(a.id, b.id) })
	w.active = nil
	loss := fmt.Sprintf("worker %d, %s", w.slot, end)
	if len(bundles) > 0 {
		r.pool.lost(loss)
	}
	for _, b := range bundles {
		b.worker, b.output, b.open, b.resp = nil, nil, nil, nil
		b.losses = append(b.losses, loss)
		times := fmt.Sprintf("its worker process was lost %d times", len(b.losses))
		if len(b.losses) == 1 {
			times = "its worker process was lost"
		}
		switch {
		case b.wroteState:
			r.fail(b, fmt.Sprintf("pool: %s while running bundle %s (%s), which had written user state, so it cannot be repeated: %s",
				times, b.id, b.stage.name, strings.Join(b.losses, "; ")))
		case len(b.losses) >= maxLosses:
			r.fail(b, fmt.Sprintf("pool: gave up bundle %s (%s): %s while running it: %s; \"killed\" without a reason is often the system out of memory",
				b.id, b.stage.name, times, strings.Join(b.losses, "; ")))
		default:
			r.dispatch(b)
		}
	}
	r.dispatchWaiting()
}

// replace starts a process that replaces w, or gives up the slot if no process manages to connect.
// It needs r.mu.
func (r *router) replace(w *worker, end string) {
	if w.met {
		r.startWorker(w.slot)
		return
	}
	r.starts[w.slot]++
	r.settled[w.slot] = true // the other processes need not wait for it
	if r.starts[w.slot] < maxLosses {
		time.AfterFunc(restartTime<<r.starts[w.slot], func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.startWorker(w.slot)
		})
		return
	}
	text := fmt.Sprintf("pool: worker process %d (%s) could not be started in %d attempts: %s",
		w.slot, strings.Join(r.pool.opt.Command, " "), maxLosses, end)
	r.workers[w.slot] = nil
	if slices.ContainsFunc(r.workers, func(w *worker) bool { return w != nil }) {
		fmt.Fprintf(r.pool.opt.Stderr, "%s; the job goes on with fewer\n", text)
		return
	}
	r.refuse(text)
}

// Bundles.

// bundleOf returns the open bundle with an id, and creates it if necessary. It needs r.mu.
func (r *router) bundleOf(id string) *bundle {
	b := r.bundles[id]
	if b == nil {
		b = &bundle{id: id}
		r.bundles[id] = b
	}
	return b
}

// admit handles a ProcessBundle instruction from Prism.
func (r *router) admit(req *fnpb.InstructionRequest) {
	r.mu.Lock()
	b := r.bundleOf(req.GetInstructionId())
	b.req = req
	r.mu.Unlock()
	go func() { // asks Prism, which may be waiting for us
		s, err := r.stage(req.GetProcessBundle().GetProcessBundleDescriptorId())
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.bundles[b.id] != b {
			return // refused meanwhile
		}
		if err != nil {
			r.fail(b, err.Error())
			return
		}
		b.stage = s
		r.dispatch(b)
	}()
}

// hasRoom reports whether a worker that runs the given number of bundles can run another one.
func (o *Options) hasRoom(bundles int) bool { return o.Bundles == 0 || bundles < o.Bundles }

// dispatch assigns a bundle to the worker with the fewest bundles, or makes it wait. It needs r.mu.
func (r *router) dispatch(b *bundle) {
	if r.refusal != "" {
		r.fail(b, r.refusal)
		return
	}
	var w *worker
	for _, x := range r.workers {
		if x != nil && x.live && r.pool.opt.hasRoom(len(x.active)) && (w == nil || len(x.active) < len(w.active)) {
			w = x
		}
	}
	// At the start of a job, the first process to connect would get all bundles, so this waits for
	// the others.
	if w == nil || slices.Contains(r.settled, false) {
		r.waiting = append(r.waiting, b)
		return
	}
	b.worker, b.open = w, map[string]bool{}
	for _, name := range b.stage.outputs {
		b.open[name] = true
	}
	w.active[b.id] = b
	w.control.put(b.req)
	for _, e := range b.input {
		w.data.put(e)
	}
}

// dispatchWaiting needs r.mu.
func (r *router) dispatchWaiting() {
	waiting := r.waiting
	r.waiting = nil
	for _, b := range waiting {
		r.dispatch(b)
	}
}

// answer ends a bundle. It needs r.mu.
func (r *router) answer(b *bundle, resp *fnpb.InstructionResponse) {
	delete(r.bundles, b.id)
	r.responses.put(resp)
	if b.worker != nil {
		delete(b.worker.active, b.id)
		r.dispatchWaiting()
	}
}

// fail needs r.mu.
func (r *router) fail(b *bundle, text string) {
	r.failed[b.id] = true
	r.answer(b, &fnpb.InstructionResponse{InstructionId: b.id, Error: text})
}

// input handles elements and timers from Prism. The instructions of their bundles may arrive later.
func (r *router) input(e *fnpb.Elements) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(id string, e *fnpb.Elements) {
		if r.failed[id] {
			return
		}
		b := r.bundleOf(id)
		b.input = append(b.input, e)
		if b.worker != nil {
			b.worker.data.put(e)
		}
	}
	for _, t := range e.GetTimers() {
		add(t.GetInstructionId(), &fnpb.Elements{Timers: []*fnpb.Elements_Timers{t}})
	}
	for _, d := range e.GetData() {
		add(d.GetInstructionId(), &fnpb.Elements{Data: []*fnpb.Elements_Data{d}})
	}
}

// attempt returns the bundle with an id if w is running it. Messages from a worker that has lost
// the bundle are ignored. It needs r.mu.
func (r *router) attempt(w *worker, id string) *bundle {
	b := r.bundles[id]
	if b == nil || b.worker != w || !w.live {
		return nil
	}
	return b
}

// output holds elements and timers from a worker.
func (r *router) output(w *worker, e *fnpb.Elements) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(id, stream string, last bool, e *fnpb.Elements) {
		b := r.attempt(w, id)
		if b == nil {
			return
		}
		b.output = append(b.output, e)
		if last {
			delete(b.open, stream)
			r.complete(b)
		}
	}
	for _, t := range e.GetTimers() {
		add(t.GetInstructionId(), timerStream(t.GetTransformId(), t.GetTimerFamilyId()), t.GetIsLast(),
			&fnpb.Elements{Timers: []*fnpb.Elements_Timers{t}})
	}
	for _, d := range e.GetData() {
		add(d.GetInstructionId(), dataStream(d.GetTransformId()), d.GetIsLast(),
			&fnpb.Elements{Data: []*fnpb.Elements_Data{d}})
	}
}

// complete sends a bundle's output and response to Prism once both are complete. They arrive on
// different connections, in any order. It needs r.mu.
func (r *router) complete(b *bundle) {
	if b.resp == nil || len(b.open) > 0 {
		return
	}
	for _, e := range b.output {
		r.elements.put(e)
	}
	if b.resp.GetProcessBundle().GetRequiresFinalization() {
		r.finalize[b.id] = b.worker
	}
	r.answer(b, b.resp)
}

// response handles a worker's response to an instruction.
func (r *router) response(w *worker, resp *fnpb.InstructionResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := resp.GetInstructionId()
	if q, ok := r.asked[id]; ok && q.worker == w {
		delete(r.asked, id)
		if progress := resp.GetProcessBundleProgress(); progress != nil {
			progress.MonitoringData = r.metrics.encode(progress.GetMonitoringInfos())
			progress.MonitoringInfos = nil
		}
		r.responses.put(resp)
		return
	}
	b := r.attempt(w, id)
	if b == nil {
		return
	}
	if resp.GetError() != "" { // from the user's function, which would fail again
		r.failed[id] = true
		r.answer(b, resp)
		return
	}
	if done := resp.GetProcessBundle(); done != nil {
		done.MonitoringData = r.metrics.encode(done.GetMonitoringInfos())
		done.MonitoringInfos = nil
	}
	b.resp = resp
	r.complete(b)
}

// Other instructions.

// instruction handles an instruction from Prism.
func (r *router) instruction(req *fnpb.InstructionRequest) {
	if req.GetProcessBundle() != nil {
		r.admit(req)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	resp := &fnpb.InstructionResponse{InstructionId: req.GetInstructionId()}
	switch {
	case req.GetProcessBundleProgress() != nil:
		id := req.GetProcessBundleProgress().GetInstructionId()
		switch b := r.bundles[id]; {
		case b == nil || b.req == nil:
			resp.Error = fmt.Sprintf("pool: progress of bundle %s, which is not open", id)
		case b.worker == nil || !b.worker.live:
			resp.Response = noProgress()
		default:
			r.ask(b.worker, req)
			return
		}
	case req.GetProcessBundleSplit() != nil:
		// The router never splits, which the protocol allows. A split would end a bundle according
		// to what its current worker has read so far; if that worker were lost, no other worker
		// could stop at the same element.
		resp.Response = &fnpb.InstructionResponse_ProcessBundleSplit{ProcessBundleSplit: &fnpb.ProcessBundleSplitResponse{}}
	case req.GetFinalizeBundle() != nil:
		id := req.GetFinalizeBundle().GetInstructionId()
		if w := r.finalize[id]; w != nil && w.live {
			delete(r.finalize, id)
			r.ask(w, req)
			return
		}
		resp.Error = fmt.Sprintf("pool: the worker process that ran bundle %s is gone; it cannot be finalized", id)
	case req.GetMonitoringInfos() != nil:
		resp.Response = &fnpb.InstructionResponse_MonitoringInfos{MonitoringInfos: &fnpb.MonitoringInfosMetadataResponse{
			MonitoringInfo: r.metrics.describe(req.GetMonitoringInfos().GetMonitoringInfoId()),
		}}
	case req.GetHarnessMonitoringInfos() != nil: // a Go worker has none either
		resp.Response = &fnpb.InstructionResponse_HarnessMonitoringInfos{HarnessMonitoringInfos: &fnpb.HarnessMonitoringInfosResponse{}}
	default:
		resp.Error = fmt.Sprintf("pool: instruction %T is not supported", req.GetRequest())
	}
	r.responses.put(resp)
}

func noProgress() *fnpb.InstructionResponse_ProcessBundleProgress {
	return &fnpb.InstructionResponse_ProcessBundleProgress{ProcessBundleProgress: &fnpb.ProcessBundleProgressResponse{}}
}

// ask passes an instruction on to a worker. It needs r.mu.
func (r *router) ask(w *worker, req *fnpb.InstructionRequest) {
	r.asked[req.GetInstructionId()] = question{w, req}
	w.control.put(req)
}

// unanswered answers for a worker that has gone. It needs r.mu.
func (r *router) unanswered(req *fnpb.InstructionRequest, end string) {
	resp := &fnpb.InstructionResponse{InstructionId: req.GetInstructionId()}
	if req.GetProcessBundleProgress() != nil {
		resp.Response = noProgress() // the bundle is restarted
	} else {
		resp.Error = fmt.Sprintf("pool: no answer to %T: %s", req.GetRequest(), end)
	}
	r.responses.put(resp)
}

// stage returns the plan with an id, as sent to the workers.
func (r *router) stage(id string) (*stage, error) {
	r.mu.Lock()
	s := r.stages[id]
	r.mu.Unlock()
	if s != nil {
		return s, nil
	}
	desc, err := r.descriptors.GetProcessBundleDescriptor(r.ctx, &fnpb.GetProcessBundleDescriptorRequest{ProcessBundleDescriptorId: id})
	if err != nil {
		return nil, fmt.Errorf("pool: asking the runner for stage %s: %w", id, err)
	}
	s, err = newStage(desc, r.pool.endpoint)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stages[id] = s
	return s, nil
}

// provisionInfo returns Prism's information about the job, for a worker process.
func (r *router) provisionInfo() (*fnpb.GetProvisionInfoResponse, error) {
	resp, err := r.provision.GetProvisionInfo(r.ctx, &fnpb.GetProvisionInfoRequest{})
	if err != nil {
		return nil, err
	}
	if info := resp.GetInfo(); info != nil {
		info.RunnerCapabilities = nil
		info.StatusEndpoint = nil
		redirect(info.GetControlEndpoint(), r.pool.endpoint)
		redirect(info.GetLoggingEndpoint(), r.pool.endpoint)
	}
	return resp, nil
}

// State.

// stateRequest passes a state request of a worker on under an id of our own,
// because every worker numbers its requests from 1.
func (r *router) stateRequest(w *worker, req *fnpb.StateRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.attempt(w, req.GetInstructionId())
	if b == nil {
		w.state.put(&fnpb.StateResponse{Id: req.GetId(),
			Error: fmt.Sprintf("pool: state request for bundle %s, which is not open on this worker", req.GetInstructionId())})
		return
	}
	// Prism applies a write at once, so that a repetition would apply it twice.
	if req.GetGet() == nil {
		b.wroteState = true
	}
	r.lastCall++
	id := strconv.Itoa(r.lastCall)
	r.calls[id] = stateCall{w, req.GetId()}
	req.Id = id
	r.requests.put(req)
}

// stateResponse handles Prism's response to a state request.
func (r *router) stateResponse(resp *fnpb.StateResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call, ok := r.calls[resp.GetId()]
	if !ok {
		return // its worker has ended
	}
	delete(r.calls, resp.GetId())
	resp.Id = call.id
	call.worker.state.put(resp)
}
