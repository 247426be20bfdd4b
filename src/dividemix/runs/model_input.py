"""What the model of a run takes: images, vectors, or other samples that an encoder turns into vectors."""

from dividemix.model.encoded_input import EncodedInput, Input
from dividemix.model.inputs import ImageInput, VectorInput
from dividemix.model.row_input import RowInput
from dividemix.model.text_input import TextInput
from dividemix.planning.encoding import encoder_of
from dividemix.planning.job import Job
from dividemix.planning.material import Material


def model_input(job: Job, material: Material) -> Input:
    """The input of the job's nets, from raw samples as the data has them."""
    if material.kind == "images":
        return ImageInput(material.shape, material.mean, material.std, job.settings.crop_size)
    vectors, encoding = VectorInput(material.mean, material.std), material.encoding
    if encoding is None:
        return VectorInput(material.mean, material.std, material.feature_names)
    if encoding.source.kind == "rows":
        return RowInput(encoding.fitted, vectors)
    encoder = encoding.fitted or encoder_of(job)
    assert encoder is not None
    if encoding.source.kind == "texts":
        return TextInput(encoding.encoder, encoder, vectors, encoding.source.text_column or job.text_column)
    return EncodedInput(encoding.source.train_samples.shape[1:], encoding.encoder, encoder, vectors)
