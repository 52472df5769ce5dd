{
  "targets": [
    {
      "target_name": "networkdirect_hca",
      "sources": [
        "<!@(node scripts/list-sources.mjs kernel-bridge/hca/engine kernel-bridge/hca/addon)"
      ],
      "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")", "kernel-bridge/hca", "kernel-bridge/hca/engine"],
      "defines": ["NAPI_VERSION=8", "NAPI_DISABLE_CPP_EXCEPTIONS"],
      "cflags_cc": ["-std=c++17", "-O3", "-fno-exceptions", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wno-missing-field-initializers"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-fexceptions"]
    }
  ]
}
