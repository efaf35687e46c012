package embedded

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"slices"
)

// checkEvery is how many steps a loop takes between two looks at its context.
const checkEvery = 1024

// fileWriter writes a file and sums it up.
type fileWriter struct {
	out  *bufio.Writer // to the file and its hash
	size int64         // bytes written
}

// Write implements io.Writer.
func (f *fileWriter) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	f.size += int64(n)
	return n, err
}

// WriteString writes the bytes of s.
func (f *fileWriter) WriteString(s string) (int, error) {
	n, err := f.out.WriteString(s)
	f.size += int64(n)
	return n, err
}

// writeFile creates the file at path, lets write fill it, and makes it durable.
// The result has no name.
func writeFile(path string, write func(*fileWriter) error) (info FileInfo, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return info, err
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
	}()
	sum := sha256.New()
	f := &fileWriter{out: bufio.NewWriterSize(io.MultiWriter(file, sum), 1<<18)}
	if err := write(f); err != nil {
		return info, err
	}
	if err := f.out.Flush(); err != nil {
		return info, err
	}
	info.Size, info.SHA256 = f.size, hex.EncodeToString(sum.Sum(nil))
	return info, file.Sync()
}

// putNumbers writes numbers in little-endian order.
func putNumbers[T number](f *fileWriter, numbers []T) error {
	for block := range slices.Chunk(numbers, 1<<13) {
		if err := binary.Write(f, binary.LittleEndian, block); err != nil {
			return err
		}
	}
	return nil
}
