package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sort"
	"sync"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxMessageBytes is the limit of one gRPC message, in both directions and on
// all connections: Prism sends the whole input of a bundle as one message.
const maxMessageBytes = math.MaxInt32

// Options configures a Pool.
type Options struct {
	// Workers is the number of worker processes of a job, at least 1.
	Workers int

	// Bundles is the maximum number of bundles that a worker runs at a time; further bundles wait
	// until a worker has finished another one. 0 means that bundles never wait.
	Bundles int

	// Command is the program of a worker with its arguments. It must call Child
	// first. Empty means this executable without arguments.
	Command []string

	// Env is added to the environment of this process to form the environment of the workers.
	Env []string

	// Stderr receives the workers' standard output and standard error. Each line begins with the
	// number of its worker. Nil means os.Stderr.
	Stderr io.Writer
}

// Pool is an external worker pool in the sense of the Fn API: Prism asks it to
// start one SDK worker for a job. The pool starts a router with several processes instead. See the
// package documentation.
type Pool struct {
	fnpb.UnimplementedBeamFnExternalWorkerPoolServer
	fnpb.UnimplementedProvisionServiceServer
	fnpb.UnimplementedBeamFnControlServer
	fnpb.UnimplementedBeamFnDataServer
	fnpb.UnimplementedBeamFnStateServer
	fnpb.UnimplementedBeamFnLoggingServer

	opt      Options
	endpoint string // host:port of server
	secret   string // part of every worker id, so that no other process can act as a worker
	server   *grpc.Server
	unwatch  func() bool // stops waiting for the context of Start

	mu      sync.Mutex
	closed  bool
	routers map[string]*router // by the worker id that Prism gave
	workers map[string]*worker // by the worker id that the router gave
	losses  []string           // see Losses
}

// Start opens a pool on the loopback interface. It starts no process until a job asks for its
// worker. The pool closes when ctx ends or with Close.
func Start(ctx context.Context, opt Options) (*Pool, error) {
	if opt.Workers < 1 {
		return nil, fmt.Errorf("pool: %d workers, want at least 1", opt.Workers)
	}
	if len(opt.Command) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("pool: the program of the workers is not known: %w", err)
		}
		opt.Command = []string{exe}
	}
	if opt.Stderr == nil {
		opt.Stderr = os.Stderr
	}
	opt.Stderr = &lockedWriter{w: opt.Stderr}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("pool: no port on the loopback interface: %w", err)
	}
	p := &Pool{
		opt:      opt,
		endpoint: listener.Addr().String(),
		secret:   rand.Text(),
		server:   grpc.NewServer(grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(maxMessageBytes)),
		routers:  map[string]*router{},
		workers:  map[string]*worker{},
	}
	fnpb.RegisterBeamFnExternalWorkerPoolServer(p.server, p)
	fnpb.RegisterProvisionServiceServer(p.server, p)
	fnpb.RegisterBeamFnControlServer(p.server, p)
	fnpb.RegisterBeamFnDataServer(p.server, p)
	fnpb.RegisterBeamFnStateServer(p.server, p)
	fnpb.RegisterBeamFnLoggingServer(p.server, p)
	go p.server.Serve(listener)
	p.unwatch = context.AfterFunc(ctx, p.Close)
	return p, nil
}

// Endpoint returns the host:port of the pool, the value of Beam's option
// environment_config for the environment type EXTERNAL.
func (p *Pool) Endpoint() string { return p.endpoint }

// Use sets Beam's job options of this process so that the pipelines it executes run on the pool, until
// the returned function restores the options.
func (p *Pool) Use() (restore func()) { return use(p.endpoint) }

// use makes pipelines run on the external worker pool with this address.
func use(endpoint string) (restore func()) {
	kind, config, program := *jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary
	*jobopts.EnvironmentType = "EXTERNAL"
	*jobopts.EnvironmentConfig = endpoint
	// Beam would stage the program as an artifact of the job, tens of megabytes
	// that no one reads: the workers are started from the file.
	*jobopts.WorkerBinary = os.DevNull
	return func() {
		*jobopts.EnvironmentType, *jobopts.EnvironmentConfig, *jobopts.WorkerBinary = kind, config, program
	}
}

// Loopback makes the pipelines that this process executes run in this process, until the returned
// function is called. Beam's environment type LOOPBACK does the same, but leaves an empty file in the
// folder for temporary files after each pipeline.
func Loopback(ctx context.Context) (stop func(), err error) {
	server, err := extworker.StartLoopback(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("pool: no port on the loopback interface: %w", err)
	}
	restore := use(server.EnvironmentConfig(ctx))
	return func() {
		restore()
		server.Stop(ctx)
	}, nil
}

// PIDs returns the process ids of the workers that run now, in ascending order.
func (p *Pool) PIDs() []int {
	var pids []int
	for _, w := range p.running() {
		if pid := w.pid(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	sort.Ints(pids)
	return pids
}

// Kill kills the worker processes that choose selects by their number (0 to Workers-1) and by the work
// that they have begun, but not ended (see Report). It is for tests: a job must not notice.
func (p *Pool) Kill(choose func(slot int, doing []string) bool) {
	for _, w := range p.running() {
		if choose(w.slot, w.unfinished()) {
			w.kill()
		}
	}
}

// Losses describes how each worker process ended that had bundles, which other processes then repeated.
func (p *Pool) Losses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.losses)
}

func (p *Pool) running() []*worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	workers := make([]*worker, 0, len(p.workers))
	for _, w := range p.workers {
		workers = append(workers, w)
	}
	return workers
}

// Close ends all worker processes and waits until they have gone. A job that
// still runs fails.
func (p *Pool) Close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	var routers []*router
	for _, r := range p.routers {
		routers = append(routers, r)
	}
	p.mu.Unlock()
	for _, r := range routers {
		r.abort("pool: the worker pool was closed while the job was running")
	}
	for _, r := range routers {
		r.wait()
	}
	if first {
		p.unwatch()
		p.server.Stop()
	}
}

// StartWorker handles Prism's request for the worker of a job.
func (p *Pool) StartWorker(_ context.Context, req *fnpb.StartWorkerRequest) (*fnpb.StartWorkerResponse, error) {
	r, err := p.routerFor(req)
	if err == nil {
		err = r.start(req)
	}
	if err != nil {
		return &fnpb.StartWorkerResponse{Error: err.Error()}, nil
	}
	return &fnpb.StartWorkerResponse{}, nil
}

func (p *Pool) routerFor(req *fnpb.StartWorkerRequest) (*router, error) {
	for name, service := range map[string]interface{ GetUrl() string }{
		"control": req.GetControlEndpoint(), "logging": req.GetLoggingEndpoint(), "provision": req.GetProvisionEndpoint(),
	} {
		if service.GetUrl() == "" {
			return nil, fmt.Errorf("pool: worker %q: no %s endpoint in the request", req.GetWorkerId(), name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := req.GetWorkerId()
	if p.closed {
		return nil, errors.New("pool: the worker pool is closed")
	}
	if _, ok := p.routers[id]; ok {
		return nil, fmt.Errorf("pool: worker id %q exists already", id)
	}
	p.routers[id] = newRouter(p, id)
	return p.routers[id], nil
}

// StopWorker handles Prism's message that a job has ended.
func (p *Pool) StopWorker(_ context.Context, req *fnpb.StopWorkerRequest) (*fnpb.StopWorkerResponse, error) {
	p.mu.Lock()
	r, ok := p.routers[req.GetWorkerId()]
	p.mu.Unlock()
	if !ok {
		return &fnpb.StopWorkerResponse{Error: fmt.Sprintf("pool: no worker with id %q", req.GetWorkerId())}, nil
	}
	r.stopWorkers()
	// Prism closes the control stream after this call; the rest ends with it.
	time.AfterFunc(partingTime, r.disconnect)
	return &fnpb.StopWorkerResponse{}, nil
}

func (p *Pool) forget(r *router) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.routers, r.id)
}

func (p *Pool) lost(end string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losses = append(p.losses, end)
}

func (p *Pool) know(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers[w.id] = w
}

func (p *Pool) unknow(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.workers, w.id)
}

// workerOf returns the worker process that made the call.
func (p *Pool) workerOf(ctx context.Context) (*worker, error) {
	id, err := grpcx.ReadWorkerID(ctx)
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.workers[id]
	if !ok {
		return nil, status.Errorf(codes.Unauthenticated, "pool: no worker process with id %q", id)
	}
	return w, nil
}

// The services for the worker processes. Each call says in its metadata which
// process it comes from.

// GetProvisionInfo sends a worker process the pipeline options of the job.
func (p *Pool) GetProvisionInfo(ctx context.Context, _ *fnpb.GetProvisionInfoRequest) (*fnpb.GetProvisionInfoResponse, error) {
	w, err := p.workerOf(ctx)
	if err != nil {
		return nil, err
	}
	return w.router.provisionInfo()
}

// GetProcessBundleDescriptor sends a worker process the plan of a stage.
func (p *Pool) GetProcessBundleDescriptor(ctx context.Context, req *fnpb.GetProcessBundleDescriptorRequest) (*fnpb.ProcessBundleDescriptor, error) {
	w, err := p.workerOf(ctx)
	if err != nil {
		return nil, err
	}
	s, err := w.router.stage(req.GetProcessBundleDescriptorId())
	if err != nil {
		return nil, err
	}
	return s.desc, nil
}

// Control carries instructions to a worker process and its responses back.
func (p *Pool) Control(stream fnpb.BeamFnControl_ControlServer) error {
	w, err := p.workerOf(stream.Context())
	if err != nil {
		return err
	}
	w.router.connected(w)
	return serve(w, "control", stream, w.control, w.router.response)
}

// Data carries elements and timers to a worker process and its output back.
func (p *Pool) Data(stream fnpb.BeamFnData_DataServer) error {
	w, err := p.workerOf(stream.Context())
	if err != nil {
		return err
	}
	return serve(w, "data", stream, w.data, w.router.output)
}

// State carries state requests of a worker process and their responses back.
func (p *Pool) State(stream fnpb.BeamFnState_StateServer) error {
	w, err := p.workerOf(stream.Context())
	if err != nil {
		return err
	}
	return serve(w, "state", stream, w.state, w.router.stateRequest)
}

// Logging passes the log entries of a worker process on to Prism.
func (p *Pool) Logging(stream fnpb.BeamFnLogging_LoggingServer) error {
	w, err := p.workerOf(stream.Context())
	if err != nil {
		return err
	}
	for {
		entries, err := stream.Recv()
		if err != nil {
			return nil // lost log entries are no reason to give up a worker
		}
		w.router.logs.put(entries)
	}
}

// serve runs one stream of a worker process until it breaks. If a worker loses one of its streams,
// messages are lost, so the worker is given up.
func serve[In, Out any](w *worker, name string, stream interface {
	Context() context.Context
	Send(Out) error
	Recv() (In, error)
}, out *queue[Out], handle func(*worker, In)) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	go func() {
		for {
			in, err := stream.Recv()
			if err != nil {
				cancel(err)
				return
			}
			handle(w, in)
		}
	}()
	err := out.pump(ctx, stream.Send)
	cancel(err)
	w.giveUp(fmt.Sprintf("its %s connection broke: %v", name, err))
	return err
}
