package pass

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/site"
)

// TestWorkersProduceSameBytes checks that the profile is byte-identical for any number of workers
// and segments. The inputs are the demos and the first references of real traces, both in their
// original format and as containers.
func TestWorkersProduceSameBytes(t *testing.T) {
	inputs := map[string]Options{}
	demos, err := site.Demos()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range demos {
		inputs[demoPrefix+d.Name] = Options{}
	}
	if _, err := tracetest.FindData(); err != nil {
		t.Log("real traces are not tested: ", err)
	} else {
		for _, name := range tracetest.RealTraces {
			o := Options{}
			o.Spec.Limit = 400_000
			inputs[tracetest.RealPath(t, name)] = o
			inputs[convertTrace(t, name)] = Options{}
		}
	}
	for name, o := range inputs {
		t.Run(name, func(t *testing.T) {
			o.Workers = 1
			one, references := analyzed(t, name, o)
			for workers, divisions := range map[int][]int{2: {0, 7}, 3: {1, 64}, 8: {0, 2, 64}} {
				o.Workers = workers
				for _, segments := range divisions {
					o.Segment = 0
					if segments > 0 {
						o.Segment = (references + segments - 1) / segments
					}
					if several, _ := analyzed(t, name, o); !bytes.Equal(several, one) {
						t.Errorf("the profile of %d workers with %d segments differs from the profile of one worker", o.Workers, segments)
					}
				}
			}
		})
	}
}

// convertTrace writes the first references of a real trace to a container, and returns the path of
// the container.
func convertTrace(t *testing.T, name string) (path string) {
	t.Helper()
	in, err := Open(context.Background(), tracetest.RealPath(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	if _, err := in.Convert(context.Background(), &out, ConvertOptions{To: "sgt", Part: sgt.Part{Limit: 400_000}}); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), filepath.Base(name)+".sgt")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func analyzed(t *testing.T, name string, o Options) (encoded []byte, references int) {
	t.Helper()
	in, err := Open(context.Background(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	result, err := in.Analyze(context.Background(), o)
	if err != nil || result.Stopped != nil {
		t.Fatal(err, result)
	}
	return result.Profile.Encode(), int(result.Profile.Totals.AllReferences())
}
