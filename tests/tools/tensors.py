"""Every dtype of both formats, and files made and read by the packages that own the formats."""

import io
import json
import struct

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

# name of ours: (safetensors, bits of an element)
FORMATS = {
    "bool": ("BOOL", 8),
    "uint8": ("U8", 8),
    "int8": ("I8", 8),
    "int16": ("I16", 16),
    "uint16": ("U16", 16),
    "int32": ("I32", 32),
    "uint32": ("U32", 32),
    "int64": ("I64", 64),
    "uint64": ("U64", 64),
    "float16": ("F16", 16),
    "bfloat16": ("BF16", 16),
    "float32": ("F32", 32),
    "float64": ("F64", 64),
    "complex64": ("C64", 64),
    "float8_e5m2": ("F8_E5M2", 8),
    "float8_e4m3": ("F8_E4M3", 8),
    "float8_e8m0": ("F8_E8M0", 8),
    "float8_e4m3fnuz": ("F8_E4M3FNUZ", 8),
    "float8_e5m2fnuz": ("F8_E5M2FNUZ", 8),
    "float6_e2m3": ("F6_E2M3", 6),
    "float6_e3m2": ("F6_E3M2", 6),
    "float4": ("F4", 4),
}
NUMPY = [
    "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "complex64",
]  # fmt: skip

FLOATS = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float64": np.dtype(np.float64),
}
_TO_SAFETENSORS = {np.dtype(n).name: FORMATS[n][0] for n in NUMPY} | {"bfloat16": "BF16"}
_FROM_SAFETENSORS = {v: k for k, v in _TO_SAFETENSORS.items()}


def raw(array):
    return np.ascontiguousarray(array).tobytes()


def random_bytes(name, count, seed=0):
    """Bytes of `count` elements, any bits (a truth value's are 0 or 1)."""
    rng = np.random.default_rng([seed, *name.encode()])
    size = count * FORMATS[name][1] // 8
    data = rng.integers(0, 2 if name == "bool" else 256, size, dtype=np.uint8)
    return data.tobytes()


# The package's own names for the types that it can write.
PACKAGE = {name: name for name in FORMATS} | {
    "float8_e4m3": "float8_e4m3fn",
    "float8_e8m0": "float8_e8m0fnu",
    "float4": "float4_e2m1fn_x2",
}
for _name in ("float6_e2m3", "float6_e3m2"):
    del PACKAGE[_name]


def package_writes(dtype, shape):
    return dtype in PACKAGE and (dtype != "float4" or (len(shape) > 0 and shape[-1] % 2 == 0))


def save_raw(path, tensors):
    """{name: (dtype of ours, shape, bytes)} by the safetensors package."""
    specs, alive = {}, []
    for name, (dtype, shape, content) in tensors.items():
        data = np.frombuffer(content, np.uint8)
        alive.append(data)
        pairs = [*shape[:-1], shape[-1] // 2] if dtype == "float4" else list(shape)
        specs[name] = safetensors.TensorSpec(
            dtype=PACKAGE[dtype], shape=pairs, data_ptr=data.ctypes.data, data_len=data.size
        )
    path.write_bytes(safetensors.serialize(specs))


def save_by_hand(path, tensors):
    """The same for types that the package reads but does not write."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {
            "dtype": FORMATS[dtype][0],
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load_raw(path):
    """{name: (safetensors dtype, shape, bytes)} as the safetensors package reads a file."""
    return {
        name: (t["dtype"], tuple(t["shape"]), bytes(t["data"]))
        for name, t in safetensors.deserialize(path.read_bytes())
    }


def save(path, **arrays):
    """Arrays of numpy's dtypes and bfloat16, written by the safetensors package."""
    save_raw(path, {n: (np.dtype(a.dtype).name, a.shape, raw(a)) for n, a in arrays.items()})


def load(path):
    """The same back."""
    result = {}
    for name, (dtype, shape, data) in load_raw(path).items():
        ours = _FROM_SAFETENSORS[dtype]
        result[name] = np.frombuffer(
            data, FLOATS.get(ours, np.dtype(ours if ours != "bfloat16" else "f4"))
        ).reshape(shape)
    return result


def npy_bytes(array, **options):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **options)
    return out.getvalue()
