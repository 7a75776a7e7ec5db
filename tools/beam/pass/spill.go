package pass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/stackglass/stackglass/tools/beam/files"
)

// DefaultMostInline is the default of the option MostInline. A runner keeps the messages of all
// neighbours of a node in memory, and accepts at most 2 GB in one message.
const DefaultMostInline = 16 << 20

// mostMessage is the maximum of the option MostInline. The rest of 2 GB is for the other fields.
const mostMessage = 2_000_000_000

// Temporarily returns options with which workers store large segments and converted traces in a new
// folder, and a function that deletes the folder. The folder is inside the workspace or, without a
// workspace, inside the output folder. In a workspace, converted traces are kept for later jobs.
func (o Options) Temporarily() (with Options, remove func(context.Context) error) {
	parent := o.Workspace
	if parent == "" {
		parent = o.Output
	}
	o.Spill = files.Join(parent, "job-"+unique())
	if o.Converted = o.Workspace; o.Converted == "" {
		o.Converted = o.Spill
	}
	return o, func(ctx context.Context) error { return files.RemoveFolder(ctx, o.Spill) }
}

// spill moves the profile of a segment to a file, if it is larger than the option MostInline. The
// segment then contains the name and the digest of the file.
func (o *Options) spill(ctx context.Context, s Segment) (Segment, error) {
	if uint64(len(s.Profile)) <= o.MostInline {
		return s, nil
	}
	sum := sha256.Sum256(s.Profile)
	s.Digest = hex.EncodeToString(sum[:])
	// A repeated bundle writes the same bytes to the same name.
	s.File = files.Join(o.Spill, s.Digest+".segment")
	err := files.Write(ctx, s.File, unique(), func(w io.Writer) error {
		_, err := w.Write(s.Profile)
		return err
	})
	spilled.Update(ctx, int64(len(s.Profile)))
	s.Profile = nil
	return s, err
}

// content returns the compressed profile of a segment, from the message or from its file.
func (s *Segment) content(ctx context.Context) ([]byte, error) {
	if s.File == "" {
		return s.Profile, nil
	}
	problem := ""
	b, found, err := files.Read(ctx, s.File)
	sum := sha256.Sum256(b)
	switch {
	case err != nil:
		problem = err.Error()
	case !found:
		problem = "the file is missing"
	case hex.EncodeToString(sum[:]) != s.Digest:
		problem = fmt.Sprintf("its content was changed or truncated to %d bytes", len(b))
	default:
		return b, nil
	}
	what := fmt.Sprintf("the segment that begins at reference %d was", s.Start)
	if s.InOrder {
		what = fmt.Sprintf("the results of run %d in order were", s.Number+1)
	}
	return nil, fmt.Errorf("%s: %s stored in %s, which cannot be used: %s; run the job again, and keep this folder until the job has ended",
		s.Trace, what, s.File, problem)
}
