package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/harness"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The environment variables that make a process a worker.
const (
	endpointVar = "STACKGLASS_BEAM_POOL"   // host:port of the router
	workerVar   = "STACKGLASS_BEAM_WORKER" // worker id, with the secret of the pool
)

// Child runs this process as a worker if a Pool started it, and then does not return. In any other
// process it does nothing.
//
// It must be the first statement of main (or TestMain): the types and DoFns
// that main's packages register in their init functions are all that a worker needs.
func Child() {
	endpoint, id := os.Getenv(endpointVar), os.Getenv(workerVar)
	if endpoint == "" || id == "" {
		return
	}
	isWorker = true
	// Processes that the worker starts are not workers.
	os.Unsetenv(endpointVar)
	os.Unsetenv(workerVar)
	// Control-C reaches the whole process group; the launcher decides.
	signal.Ignore(os.Interrupt)
	if !beam.Initialized() {
		beam.Init()
	}
	err := work(endpoint, id)
	switch status.Code(err) {
	case codes.OK, codes.Canceled, codes.Unavailable: // the launcher has ended
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// work serves the router until it closes the control connection.
func work(endpoint, id string) error {
	ctx := grpcx.WriteWorkerID(context.Background(), id)
	info, err := tools.ProvisionInfo(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("pool: asking %s for the pipeline options: %w", endpoint, err)
	}
	data, err := info.GetPipelineOptions().MarshalJSON()
	if err != nil {
		return fmt.Errorf("pool: pipeline options of the job: %w", err)
	}
	var options struct {
		Go runtime.RawOptions `json:"beam:option:go_options:v1"`
	}
	if err := json.Unmarshal(data, &options); err != nil {
		return fmt.Errorf("pool: pipeline options of the job: %w", err)
	}
	runtime.GlobalOptions.Import(options.Go)
	// No capabilities: the harness then describes every metric in full, which
	// the router needs (see metrics.go).
	return harness.MainWithOptions(ctx, endpoint, endpoint, harness.Options{})
}
