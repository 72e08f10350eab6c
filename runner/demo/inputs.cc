// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/inputs.h"

namespace fncache::runner::demo {

const char kDemoXr[] = R"(apiVersion: shop.example.org/v1alpha1
kind: Lake
metadata:
  name: lake
  labels:
    team: storage
spec:
  region: eu-central-1
  versioning: true
  buckets: 10
  retention:
    days: 30
    mode: governance
)";

const char kDemoComposition[] = R"(apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: lakes
spec:
  compositeTypeRef:
    apiVersion: shop.example.org/v1alpha1
    kind: Lake
  mode: Pipeline
  pipeline:
  - step: buckets
    functionRef:
      name: function-template
    input:
      apiVersion: function.fncache.dev/v1alpha1
      kind: Template
      spec:
        resources:
        - name: bucket-${index}
          count: ${observed.composite.resource.spec.buckets}
          base:
            apiVersion: storage.example.org/v1
            kind: Bucket
            metadata:
              labels:
                team: ${observed.composite.resource.metadata.labels.team}
            spec:
              forProvider:
                region: ${observed.composite.resource.spec.region}
                versioning: ${observed.composite.resource.spec.versioning}
                tags:
                  lake: ${observed.composite.resource.metadata.name}
        status:
          first: ${observed.resources.bucket-0.resource.metadata.name|pending}
        results:
        - message: ${observed.composite.resource.spec.buckets} buckets
  - step: policy
    functionRef:
      name: function-template
    input:
      apiVersion: function.fncache.dev/v1alpha1
      kind: Template
      spec:
        resources:
        - name: policy
          ready: true
          base:
            apiVersion: storage.example.org/v1
            kind: Policy
            spec:
              region: ${desired.resources.bucket-0.resource.spec.forProvider.region}
              retention: ${observed.composite.resource.spec.retention}
              of: ${desired.composite.resource.status.first}
)";

}  // namespace fncache::runner::demo
