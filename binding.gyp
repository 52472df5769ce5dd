{
  "target_defaults": {
    "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")", "kernel-bridge/hca", "kernel-bridge/hca/engine"],
    "defines": ["NAPI_VERSION=8", "NAPI_DISABLE_CPP_EXCEPTIONS"],
    "cflags_cc": ["-std=c++17", "-O3", "-fno-exceptions", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wno-missing-field-initializers"],
    "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-fexceptions"]
  },
  "targets": [
    {
      "target_name": "networkdirect_hca",
      "sources": [
        "<!@(node scripts/list-sources.mjs kernel-bridge/hca/engine kernel-bridge/hca/addon)"
      ]
    },
    {
      # Real HCAs: loaded where there is one. What it needs of rdma-core it finds then.
      "target_name": "networkdirect_verbs",
      "sources": [
        "<!@(node scripts/list-sources.mjs kernel-bridge/hca/verbs)",
        "kernel-bridge/hca/addon/backing_store.cc",
        "kernel-bridge/hca/engine/objects/cq.cc",
        "kernel-bridge/hca/engine/objects/qp_states.cc",
        "kernel-bridge/hca/engine/platform/linux/os.cc"
      ]
    }
  ]
}
