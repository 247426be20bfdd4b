"""The deployable result: save, load, predict, export. No torch import here."""

EXPORT_FORMATS = {  # name -> what it is; `export` writes them
    "pt2": "a program of torch.export",
    "onnx": "ONNX",
}
