package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
)

// Pushes a container image with busybox in three layers (gzip, zstd, plain). Later layers remove
// and replace files of earlier ones. The image is in an index, beside an image for an architecture
// that no test machine has.
func pushImage(busybox, reference, user string) error {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	context := context.Background()
	store := memory.New()
	layers := []ocispec.Descriptor{}
	for _, layer := range []struct {
		mediaType string
		pack      func(io.Writer) io.WriteCloser
		entries   []tar.Header
	}{
		{ocispec.MediaTypeImageLayerGzip, packGzip, base(program)},
		{ocispec.MediaTypeImageLayerZstd, packZstd, changes()},
		{ocispec.MediaTypeImageLayer, packPlain, last()},
	} {
		packed, err := archive(layer.entries, program, layer.pack)
		if err != nil {
			return err
		}
		pushed, err := oras.PushBytes(context, store, layer.mediaType, packed)
		if err != nil {
			return err
		}
		layers = append(layers, pushed)
	}
	image := ocispec.Image{Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}}
	image.Config = ocispec.ImageConfig{
		User:       user,
		Env:        []string{"COLOUR=green", "SHAPE=round"},
		Entrypoint: []string{"/bin/sh"},
		Cmd:        []string{"-c", "echo nothing was asked for; exit 9"},
		WorkingDir: "/srv/here",
	}
	own, err := pushManifest(context, store, image, layers)
	if err != nil {
		return err
	}
	image.Architecture = "mips"
	other, err := pushManifest(context, store, image, nil)
	if err != nil {
		return err
	}
	index := ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []ocispec.Descriptor{other, own},
	}
	root, err := pushJSON(context, store, ocispec.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	if err := publish(context, store, root, reference); err != nil {
		return err
	}
	fmt.Println(root.Digest)
	return nil
}

// Pulls a whole image with a stock client, which verifies every digest, into an OCI layout. Prints
// the digest of the image.
func pull(reference, folder string) error {
	context := context.Background()
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return err
	}
	repository.PlainHTTP = true
	store, err := oci.New(folder)
	if err != nil {
		return err
	}
	tag := repository.Reference.Reference
	root, err := oras.Copy(context, repository, tag, store, tag, oras.DefaultCopyOptions)
	if err != nil {
		return err
	}
	fmt.Println(root.Digest)
	return nil
}

func pushManifest(
	context context.Context, store content.Pusher, image ocispec.Image, layers []ocispec.Descriptor,
) (ocispec.Descriptor, error) {
	config, err := pushJSON(context, store, ocispec.MediaTypeImageConfig, image)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    config,
		Layers:    append([]ocispec.Descriptor{}, layers...),
	}
	pushed, err := pushJSON(context, store, ocispec.MediaTypeImageManifest, manifest)
	pushed.Platform = &image.Platform
	return pushed, err
}

func pushJSON(
	context context.Context, store content.Pusher, mediaType string, value any,
) (ocispec.Descriptor, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return oras.PushBytes(context, store, mediaType, encoded)
}

func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}

func regular(name string, size int) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(size)}
}

func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
}

func base(program []byte) []tar.Header {
	entries := []tar.Header{
		folder("./"), folder("bin"), regular("bin/busybox", len(program)),
		folder("etc"), regular("etc/passwd", 0), regular("etc/group", 0), link("etc/resolv.conf", "/nowhere/x"),
		folder("lower"), regular("lower/a", 1), regular("lower/b", 1),
		folder("deep"), folder("deep/er"), regular("deep/er/x", 1), regular("deep/y", 1),
		folder("gone"), regular("gone/x", 1), regular("folder-then-file/x", 1),
		folder("usr/lib"), link("lib", "usr/lib"), link("absolute", "/usr/lib"),
		link("link-then-folder", "usr/lib"),
	}
	for _, name := range []string{
		"sh", "cat", "ls", "id", "test", "sleep", "mkdir", "ps", "dd", "sync", "readlink", "touch",
		"head", "mount", "stat", "wc",
	} {
		entries = append(entries, link("bin/"+name, "busybox"))
	}
	return entries
}

func changes() []tar.Header {
	return []tar.Header{
		regular("lower/.wh.a", 0), regular("deep/new", 1), regular("deep/.wh..wh..opq", 0), regular("deep/newer", 1),
		regular(".wh.gone", 0), regular(".wh.never-there", 0), regular("folder-then-file", 1),
		regular("absolute/through", 1), regular("lib/same", 1), folder("link-then-folder"),
		{Typeflag: tar.TypeLink, Name: "hard", Linkname: "lower/b"},
	}
}

func last() []tar.Header {
	script := regular("greet", 0)
	script.PAXRecords = map[string]string{"SCHILY.xattr.user.colour": "green"}
	return []tar.Header{folder("tmp"), script, regular("gone", 1)}
}

// Returns the contents of a file of the image.
func contents(name string, size int64, program []byte) []byte {
	switch name {
	case "bin/busybox":
		return program
	case "etc/passwd":
		return []byte("root:x:0:0::/root:/bin/sh\nweb:x:33:34::/srv/web:/bin/sh\n")
	case "etc/group":
		return []byte("root:x:0:\nweb:x:34:\ndisk:x:6:web\n")
	case "greet":
		return []byte("#!/bin/sh\necho hello from $COLOUR\n")
	}
	return bytes.Repeat([]byte("x"), int(size))
}

func archive(entries []tar.Header, program []byte, pack func(io.Writer) io.WriteCloser) ([]byte, error) {
	var packed bytes.Buffer
	packer := pack(&packed)
	writer := tar.NewWriter(packer)
	for _, entry := range entries {
		inside := []byte{}
		if entry.Typeflag == tar.TypeReg {
			inside = contents(entry.Name, entry.Size, program)
			entry.Size = int64(len(inside))
		}
		if err := writer.WriteHeader(&entry); err != nil {
			return nil, err
		}
		if _, err := writer.Write(inside); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	if err := packer.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

func packGzip(to io.Writer) io.WriteCloser { return gzip.NewWriter(to) }

func packZstd(to io.Writer) io.WriteCloser {
	writer, _ := zstd.NewWriter(to)
	return writer
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

func packPlain(to io.Writer) io.WriteCloser { return plain{to} }
