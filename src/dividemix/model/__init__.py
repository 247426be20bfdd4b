"""The deployable result: save, load, predict, export. No torch import here."""

EXPORT_FORMATS = {"pt2": "a program of torch.export", "onnx": "ONNX"}  # name -> what it is; `export` writes them
