// A stock OCI registry (the distribution project's), and what pushes to one as ORAS does:
//
//	registry serve ADDRESS FOLDER [REALM]   with REALM, which it serves too, it wants a token
//	registry push FILE HOST/NAME:TAG [TYPE] over http; TYPE is the layer's media type
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/silly"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"
	"oras.land/oras-go/v2/registry/remote"
)

// What ORAS and upstream's oci2disk mean by a disk image.
const layerType = "application/vnd.oci.image.layer.v1.tar"

func main() {
	arguments := append(os.Args[1:], "", "", "", "")
	var err error
	switch arguments[0] {
	case "serve":
		err = serve(arguments[1], arguments[2], arguments[3])
	case "push":
		err = push(arguments[1], arguments[2], arguments[3])
	default:
		err = fmt.Errorf("usage: registry serve ADDRESS FOLDER [REALM] | push FILE HOST/NAME:TAG [TYPE]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(address, folder, realm string) error {
	config := &configuration.Configuration{
		Version: "0.1",
		Storage: configuration.Storage{
			"filesystem": configuration.Parameters{"rootdirectory": folder},
		},
	}
	config.Log.Level = "warn"
	config.Log.AccessLog.Disabled = true
	if realm != "" {
		parameters := configuration.Parameters{"realm": realm, "service": "tests"}
		config.Auth = configuration.Auth{"silly": parameters}
		at, err := url.Parse(realm)
		if err != nil {
			return err
		}
		// What the box sends as a token is the registry's to judge.
		http.HandleFunc(at.Path, func(answer http.ResponseWriter, asked *http.Request) {
			log.Printf("token for %s of %s", asked.FormValue("scope"), asked.FormValue("service"))
			fmt.Fprintln(answer, `{"token":"a.b.c"}`)
		})
	}
	app := handlers.NewApp(context.Background(), config)
	http.HandleFunc("/v2/", func(answer http.ResponseWriter, asked *http.Request) {
		log.Printf("%s %s %s", asked.Method, asked.URL.Path, asked.Header.Get("Range"))
		app.ServeHTTP(answer, asked)
	})
	return http.ListenAndServe(address, nil)
}

func push(path, reference, mediaType string) error {
	if mediaType == "" {
		mediaType = layerType
	}
	context := context.Background()
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	store, err := file.New(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer store.Close()
	layer, err := store.Add(context, filepath.Base(path), mediaType, path)
	if err != nil {
		return err
	}
	options := oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}}
	manifest, err := oras.PackManifest(
		context, store, oras.PackManifestVersion1_1, "application/vnd.tests.disk", options)
	if err != nil {
		return err
	}
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return err
	}
	repository.PlainHTTP = true
	tag := repository.Reference.Reference
	if err := store.Tag(context, manifest, tag); err != nil {
		return err
	}
	if _, err := oras.Copy(context, store, tag, repository, tag, oras.DefaultCopyOptions); err != nil {
		return err
	}
	fmt.Println(layer.Digest)
	return nil
}
