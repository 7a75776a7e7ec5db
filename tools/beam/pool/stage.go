package pool

import (
	"fmt"
	"sort"
	"strings"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"google.golang.org/protobuf/proto"
)

// stage is a ProcessBundleDescriptor as sent to the workers, with the facts that the router needs.
type stage struct {
	desc *fnpb.ProcessBundleDescriptor

	// outputs names the streams (dataStream, timerStream) that a bundle of this
	// stage must end with an IsLast before its output is complete.
	outputs []string

	// name lists the transforms that a bundle runs, for messages.
	name string
}

func dataStream(transform string) string          { return "data " + transform }
func timerStream(transform, family string) string { return "timer " + transform + " " + family }

// newStage replaces the endpoints in Prism's descriptor with the router's. It changes desc.
func newStage(desc *fnpb.ProcessBundleDescriptor, endpoint string) (*stage, error) {
	s := &stage{desc: desc}
	var names []string
	for id, t := range desc.GetTransforms() {
		switch urn := t.GetSpec().GetUrn(); urn {
		case "beam:runner:source:v1", "beam:runner:sink:v1":
			var port fnpb.RemoteGrpcPort
			if err := proto.Unmarshal(t.GetSpec().GetPayload(), &port); err != nil {
				return nil, fmt.Errorf("pool: stage %s, transform %s: payload is not a RemoteGrpcPort: %w", desc.GetId(), id, err)
			}
			redirect(port.GetApiServiceDescriptor(), endpoint)
			payload, err := proto.Marshal(&port)
			if err != nil {
				return nil, fmt.Errorf("pool: stage %s, transform %s: %w", desc.GetId(), id, err)
			}
			t.Spec.Payload = payload
			if urn == "beam:runner:sink:v1" {
				s.outputs = append(s.outputs, dataStream(id))
			}
		case "beam:transform:pardo:v1":
			var pardo pipepb.ParDoPayload
			if err := proto.Unmarshal(t.GetSpec().GetPayload(), &pardo); err != nil {
				return nil, fmt.Errorf("pool: stage %s, transform %s: payload is not a ParDoPayload: %w", desc.GetId(), id, err)
			}
			for family := range pardo.GetTimerFamilySpecs() {
				s.outputs = append(s.outputs, timerStream(id, family))
			}
			names = append(names, t.GetUniqueName())
		default:
			names = append(names, t.GetUniqueName())
		}
	}
	redirect(desc.GetStateApiServiceDescriptor(), endpoint)
	redirect(desc.GetTimerApiServiceDescriptor(), endpoint)
	sort.Strings(names)
	s.name = strings.Join(names, ", ")
	return s, nil
}

func redirect(service *pipepb.ApiServiceDescriptor, endpoint string) {
	if service.GetUrl() != "" {
		service.Url = endpoint
	}
}
