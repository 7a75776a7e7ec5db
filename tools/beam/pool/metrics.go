package pool

import (
	"sort"
	"strconv"
	"strings"

	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
)

// shortIDs gives metrics the short names under which Prism stores them.
//
// Prism identifies metrics by short ids, and asks the worker once what each id means. Every Go
// worker numbers its metrics in the order in which they occur, so the same id means different
// metrics in two processes. If the runner declares no capabilities, a worker also sends the full
// description of each metric. The router uses the description to number the metrics for all
// workers.
type shortIDs struct {
	ids   map[string]string                 // description → short id
	infos map[string]*pipepb.MonitoringInfo // short id → description without payload
}

func newShortIDs() *shortIDs {
	return &shortIDs{ids: map[string]string{}, infos: map[string]*pipepb.MonitoringInfo{}}
}

// encode returns the payloads of infos by short id.
func (s *shortIDs) encode(infos []*pipepb.MonitoringInfo) map[string][]byte {
	data := make(map[string][]byte, len(infos))
	for _, info := range infos {
		key := metricKey(info)
		id, ok := s.ids[key]
		if !ok {
			id = strconv.Itoa(len(s.ids) + 1)
			s.ids[key] = id
			s.infos[id] = &pipepb.MonitoringInfo{Urn: info.GetUrn(), Type: info.GetType(), Labels: info.GetLabels()}
		}
		data[id] = info.GetPayload()
	}
	return data
}

// describe returns the descriptions of the known ids.
func (s *shortIDs) describe(ids []string) map[string]*pipepb.MonitoringInfo {
	infos := map[string]*pipepb.MonitoringInfo{}
	for _, id := range ids {
		if info, ok := s.infos[id]; ok {
			infos[id] = info
		}
	}
	return infos
}

func metricKey(info *pipepb.MonitoringInfo) string {
	labels := make([]string, 0, len(info.GetLabels()))
	for name, value := range info.GetLabels() {
		labels = append(labels, strconv.Quote(name)+strconv.Quote(value))
	}
	sort.Strings(labels)
	return info.GetUrn() + strings.Join(labels, "")
}
