package files

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"cloud.google.com/go/storage"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/gcsx"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Beam's file systems read objects only from beginning to end. Therefore, ranges of objects are read
// with the clients that Beam's file systems use, and with the same credentials.

// Objects are read in blocks, of which the last ones are kept, because readers of a trace read many
// short ranges.
const (
	blockBytes = 4 << 20
	mostBlocks = 8
)

// object is an object of a store that can be read in ranges.
type object struct {
	bytes int64
	read  func(from, bytes int64) (io.ReadCloser, error)
	end   func() error

	mu     sync.Mutex
	blocks []block // ascending by the time of last use
}

type block struct {
	number  int64
	content []byte
}

// openObject opens an object in ranges. It returns nil if the store of a name does not support ranges.
// All ranges belong to the version of the object that was opened: after a change, reading fails.
func openObject(ctx context.Context, name string) (*object, error) {
	ctx = context.WithoutCancel(ctx) // the object outlives the bundle that opens it
	switch {
	case strings.HasPrefix(name, "gs://"):
		return openGoogle(ctx, name)
	case strings.HasPrefix(name, "s3://"):
		return openAmazon(ctx, name)
	}
	return nil, nil
}

func openGoogle(ctx context.Context, name string) (*object, error) {
	bucket, key, err := gcsx.ParseObject(name)
	if err != nil {
		return nil, err
	}
	client, err := gcsx.NewClient(ctx, storage.ScopeReadOnly)
	if err != nil { // as in Beam's file system
		if client, err = gcsx.NewUnauthenticatedClient(ctx); err != nil {
			return nil, err
		}
	}
	of := client.Bucket(bucket).Object(key)
	about, err := of.Attrs(ctx)
	if err != nil {
		client.Close()
		return nil, err
	}
	of = of.Generation(about.Generation)
	return &object{bytes: about.Size, end: client.Close, read: func(from, bytes int64) (io.ReadCloser, error) {
		return of.NewRangeReader(ctx, from, bytes)
	}}, nil
}

func openAmazon(ctx context.Context, name string) (*object, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(name, "s3://"), "/")
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(settings)
	about, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return &object{bytes: aws.ToInt64(about.ContentLength), end: func() error { return nil }, read: func(from, bytes int64) (io.ReadCloser, error) {
		part, err := client.GetObject(ctx, &s3.GetObjectInput{
			Bucket: &bucket, Key: &key, IfMatch: about.ETag, Range: aws.String(fmt.Sprintf("bytes=%d-%d", from, from+bytes-1)),
		})
		if err != nil {
			return nil, err
		}
		return part.Body, nil
	}}, nil
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at >= o.bytes {
			return n, io.EOF
		}
		content, err := o.block(at / blockBytes)
		if err != nil {
			return n, err
		}
		copied := copy(p[n:], content[at%blockBytes:])
		n, at = n+copied, at+int64(copied)
	}
	return n, nil
}

// block returns a block of the object.
func (o *object) block(number int64) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, b := range o.blocks {
		if b.number == number {
			o.blocks = append(append(o.blocks[:i:i], o.blocks[i+1:]...), b)
			return b.content, nil
		}
	}
	from := number * blockBytes
	content := make([]byte, min(blockBytes, o.bytes-from))
	r, err := o.read(from, int64(len(content)))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, err
	}
	o.blocks = append(o.blocks, block{number, content})
	if len(o.blocks) > mostBlocks {
		o.blocks = o.blocks[1:]
	}
	return content, nil
}
