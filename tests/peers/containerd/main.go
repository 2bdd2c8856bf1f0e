// Pulls an image as containerd does when a registry mirror is configured:
//
//	containerd-pull MIRROR HOST/NAME:TAG    prints the digest after all parts are pulled and verified
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: containerd-pull MIRROR HOST/NAME:TAG")
	}
	if err := mirrored(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

// Pulls a whole image from the mirror alone, whatever registry the image's name has. Prints the
// digest of the image.
func mirrored(mirror, reference string) error {
	context := context.Background()
	hosts := func(string) ([]docker.RegistryHost, error) {
		return []docker.RegistryHost{{
			Client:       http.DefaultClient,
			Host:         mirror,
			Scheme:       "http",
			Path:         "/v2",
			Capabilities: docker.HostCapabilityPull | docker.HostCapabilityResolve,
		}}, nil
	}
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: hosts})
	name, root, err := resolver.Resolve(context, reference)
	if err != nil {
		return err
	}
	fetcher, err := resolver.Fetcher(context, name)
	if err != nil {
		return err
	}
	if err := fetchAll(context, fetcher, root); err != nil {
		return err
	}
	fmt.Println(root.Digest)
	return nil
}

// Fetches the blob of a descriptor and all blobs that this blob refers to, and verifies the digest
// of each.
func fetchAll(context context.Context, fetcher remotes.Fetcher, from ocispec.Descriptor) error {
	reader, err := fetcher.Fetch(context, from)
	if err != nil {
		return err
	}
	defer reader.Close()
	all, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	if got := from.Digest.Algorithm().FromBytes(all); got != from.Digest {
		return fmt.Errorf("%s is %s", from.Digest, got)
	}
	below := []ocispec.Descriptor{}
	switch from.MediaType {
	case ocispec.MediaTypeImageIndex:
		index := ocispec.Index{}
		err = json.Unmarshal(all, &index)
		below = index.Manifests
	case ocispec.MediaTypeImageManifest:
		manifest := ocispec.Manifest{}
		err = json.Unmarshal(all, &manifest)
		below = append(manifest.Layers, manifest.Config)
	}
	if err != nil {
		return err
	}
	for _, part := range below {
		if err := fetchAll(context, fetcher, part); err != nil {
			return err
		}
	}
	return nil
}
