package analysis

import (
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/trace"
)

// rest is the unread part of a reference that touches more bytes than a step may. A range of
// gigabytes takes seconds and gigabytes of memory; the caller of Step must be able to stop.
// Other analyses read the whole reference at once.
type rest struct {
	analyses  []contract.PieceConsumer
	batch     *trace.Batch // the reference
	from, end uint64       // the latest piece
	most      uint64
}

func (r *rest) pending() bool { return r.end < r.most }

// begin passes the first piece of rows to a, if they are one reference to cut. A reference
// beyond the last address is not cut: only its first line counts.
func (r *rest) begin(a Analysis, rows *trace.Batch) bool {
	taker, ok := a.(contract.PieceConsumer)
	if !ok || rows.Len() != 1 {
		return false
	}
	bytes := uint64(rows.Bytes[0])
	if bytes <= stepBytes || rows.Addr[0]+bytes-1 < rows.Addr[0] {
		return false
	}
	if !r.pending() {
		*r = rest{analyses: r.analyses[:0], batch: rows, most: bytes}
		r.piece()
	}
	r.analyses = append(r.analyses, taker)
	taker.ConsumePiece(rows, r.from, r.end)
	return true
}

func (r *rest) piece() {
	r.from = r.end
	r.end = min(r.most, r.from+stepBytes-(r.batch.Addr[0]+r.from)%stepBytes)
}

// consume passes the next piece to the analyses.
func (r *rest) consume() {
	r.piece()
	for _, a := range r.analyses {
		a.ConsumePiece(r.batch, r.from, r.end)
	}
}
