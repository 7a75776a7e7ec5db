package open_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
)

func ExampleOpen() {
	const text = "I  04001ab0,3\n L 1fff000708,8\n S nowhere,8\n S 1fff000700,8\n"
	t, err := open.Open("app.lackey", strings.NewReader(text), open.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := trace.NewBatch(0)
	for {
		err := t.Next(b)
		if err == io.EOF {
			break
		}
		if trace.IsSyntax(err) {
			fmt.Println(err) // the reader skips only the bad record, and continues with the next record
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		for i := range b.Addr {
			fmt.Printf("%v of %d bytes at %#x by the instruction at %#x\n", b.Kind[i], b.Bytes[i], b.Addr[i], b.PC[i])
		}
	}
	fmt.Println("the format was", t.Format())
	// Output:
	// fetch of 3 bytes at 0x4001ab0 by the instruction at 0x4001ab0
	// load of 8 bytes at 0x1fff000708 by the instruction at 0x4001ab0
	// app.lackey:3: address "nowhere", want 1 to 16 hexadecimal digits
	// store of 8 bytes at 0x1fff000700 by the instruction at 0x4001ab0
	// the format was lackey
}
