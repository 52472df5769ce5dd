{
  "targets": [
    {
      "target_name": "networkdirect_hca",
      "sources": [
        "<!@(node -p \"require('node:fs').readdirSync('kernel-bridge/hca/engine').filter(f=>f.endsWith('.cc')).map(f=>'kernel-bridge/hca/engine/'+f).join(' ')\")",
        "<!@(node -p \"require('node:fs').readdirSync('kernel-bridge/hca/addon').filter(f=>f.endsWith('.cc')).map(f=>'kernel-bridge/hca/addon/'+f).join(' ')\")"
      ],
      "include_dirs": ["<!(node -p \"require('node-addon-api').include_dir\")", "kernel-bridge/hca"],
      "defines": ["NAPI_VERSION=8", "NAPI_DISABLE_CPP_EXCEPTIONS"],
      "cflags_cc": ["-std=c++17", "-O3", "-fno-exceptions", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wno-missing-field-initializers"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-fexceptions"]
    }
  ]
}
