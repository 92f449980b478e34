"""Small folders in the layouts of well-known sets of images."""

from __future__ import annotations

import bz2
import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.dataset.set_files import Case, png, write


def caltech101(folder: Path) -> None:
    from scipy.io import savemat

    for number, (name, other) in enumerate((("Faces", "Faces_2"), ("ant", "ant"))):
        for index in (1, 2):
            write(folder, {f"101_ObjectCategories/{name}/image_{index:04d}.jpg": png(10 * number + index)})
            content = io.BytesIO()
            savemat(content, {"obj_contour": np.arange(6.0).reshape(2, 3) + number + index})
            write(folder, {f"Annotations/{other}/annotation_{index:04d}.mat": content.getvalue()})


def tree(names: dict[str, int]) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        write(folder, {name: png(seed) for name, seed in names.items()})

    return build


def cityscapes(folder: Path) -> None:
    seed = 0
    for quality, parts in (("gtFine", ("train", "val", "test")), ("gtCoarse", ("train", "train_extra", "val"))):
        for part in parts:
            for city in ("bochum", "aachen"):
                start = f"{part}/{city}/{city}_000000_000019"
                seed += 1
                write(folder, {f"leftImg8bit/{start}_leftImg8bit.png": png(seed)})
                for number, kind in enumerate(("color", "instanceIds", "labelIds")):
                    content = png(100 * seed + number, channels=3 if kind == "color" else 1)
                    write(folder, {f"{quality}/{start}_{quality}_{kind}.png": content})
                write(
                    folder,
                    {f"{quality}/{start}_{quality}_polygons.json": json.dumps({"city": city, "objects": [1, 2]})},
                )


def div2k(folder: Path) -> None:
    for part, numbers in (("train", (1, 2)), ("valid", (801,))):
        for n in numbers:
            write(folder, {f"DIV2K_{part}_HR/{n:04d}.png": png(n, 4, 4)})
            for scale in (2, 3, 4):
                for kind in ("bicubic", "unknown"):
                    write(folder, {f"DIV2K_{part}_LR_{kind}/X{scale}/{n:04d}x{scale}.png": png(n + 1000 * scale)})
            for kind in ("mild", "difficult", "wild"):
                write(folder, {f"DIV2K_{part}_LR_{kind}/{n:04d}x4{kind[0]}.png": png(n + 9000)})
            write(folder, {f"DIV2K_{part}_LR_x8/{n:04d}x8.png": png(n + 8000)})


def flickr(folder: Path) -> None:
    write(folder, {f"images/{n}.jpg": png(n) for n in range(2)})
    lines = [f"{n}.jpg#{k}\tA caption {n} {k} .\n" for n in range(2) for k in range(5)]
    write(folder, {"tokens.txt": "".join(lines)})


def flowers(folder: Path) -> None:
    from scipy.io import savemat

    for n in range(1, 6):
        write(folder, {f"jpg/image_{n:05d}.jpg": png(n), f"segmim/segmim_{n:05d}.jpg": png(n + 100)})
    for name, content in (
        ("imagelabels.mat", {"labels": np.array([[77, 1, 102, 5, 6]], np.uint8)}),
        (
            "setid.mat",
            {
                "trnid": np.array([[2, 1]], np.uint16),
                "valid": np.array([[4]], np.uint16),
                "tstid": np.array([[5, 3]], np.uint16),
            },
        ),
    ):
        out = io.BytesIO()
        savemat(out, content)
        write(folder, {name: out.getvalue()})


def food101(folder: Path) -> None:
    write(folder, {f"images/{name}/{n}.jpg": png(n) for name in ("beet_salad", "apple_pie") for n in (11, 12, 13)})
    train = ["beet_salad/12", "beet_salad/11", "apple_pie/13"]
    test = ["beet_salad/13", "apple_pie/11", "apple_pie/12"]
    write(folder, {"meta/train.txt": "\n".join(train) + "\n", "meta/test.txt": "\n".join(test) + "\n"})
    write(folder, {"meta/classes.txt": "apple_pie\nbeet_salad\n"})


def kitti(folder: Path) -> None:
    lines = {
        0: "Truck 0.50 1 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56\n"
        "Car 0.00 0 1.85 387.63 181.54 423.81 203.12 1.67 1.87 3.69 -16.53 2.39 58.49 1.57\n"
        "DontCare -1 -1 -10 5.00 7.00 9.00 11.00 -1 -1 -1 -1000 -1000 -1000 -10\n",
        1: "Pedestrian 0.00 3 0.21 1 2 3 4 1.89 0.48 1.20 1.84 1.47 8.41 0.01\n"
        + "".join(
            f"{kind} 0 0 0 1 2 3 4 5 6 7 8 9 10 11\n" for kind in ("Van", "Person_sitting", "Cyclist", "Tram", "Misc")
        ),
    }
    for n, text in lines.items():
        write(folder, {f"data_object_image_2/training/image_2/{n:06d}.png": png(n)})
        write(folder, {f"data_object_image_2/testing/image_2/{n:06d}.png": png(n + 50)})
        write(folder, {f"data_object_label_2/training/label_2/{n:06d}.txt": text})


def lfw(folder: Path) -> None:
    people = {"Zed_A": 2, "Ann_B": 3, "Bob_C": 1}
    for image_set in ("lfw", "lfw_funneled", "lfw-deepfunneled"):
        for name, count in people.items():
            for n in range(1, count + 1):
                write(folder, {f"{image_set}/{name}/{name}_{n:04d}.jpg": png(len(image_set) + ord(name[0]) + n)})
    write(folder, {"lfw-names.txt": "".join(f"{name} {count}\n" for name, count in sorted(people.items()))})
    write(
        folder,
        {
            "pairsDevTrain.txt": "1\nAnn_B\t1\t2\nAnn_B\t1\tZed_A\t2\n",
            "pairsDevTest.txt": "1\nAnn_B\t2\t3\nBob_C\t1\tZed_A\t1\n",
            "pairs.txt": "2\t1\nAnn_B\t1\t3\nAnn_B\t3\tBob_C\t1\nZed_A\t1\t2\nZed_A\t2\tBob_C\t1\n",
            "peopleDevTrain.txt": "2\nAnn_B\t3\nBob_C\t1\n",
            "peopleDevTest.txt": "1\nZed_A\t2\n",
            "people.txt": "2\n1\nZed_A\t2\n2\nAnn_B\t3\nBob_C\t1\n",
        },
    )


def lsun(folder: Path) -> None:
    for number, name in enumerate(("classroom", "bedroom")):
        for part in ("train", "val"):
            write(folder, {f"{name}_{part}/{n}.jpg": png(10 * number + n) for n in (1, 2)})
    write(folder, {"test/1.jpg": png(77)})


def manifest(folder: Path) -> None:
    lines = []
    for n, (usage, label) in enumerate((("train", "dog"), ("train", "cat"), ("eval", "cat"), ("inference", "x"))):
        write(folder, {f"{n}.png": png(n)})
        line: dict[str, Any] = {"source": str(folder / f"{n}.png"), "usage": usage, "id": f"0x{n}"}
        line["annotation"] = [{"name": label, "type": "modelarts/image_classification"}]
        lines.append(json.dumps(line))
    write(folder, {"a.manifest": "\n".join(lines) + "\n"})


def omniglot(folder: Path) -> None:
    for part in ("images_background", "images_evaluation"):
        for number, name in enumerate(("Greek/character01", "Greek/character02", "Arabic/character01")):
            write(folder, {f"{part}/{name}/{n:04d}.png": png(10 * number + n, channels=1) for n in (1, 2)})


def places365(folder: Path) -> None:
    write(folder, {"categories_places365.txt": "/a/airfield 0\n/b/bar 1\n"})
    for part in ("standard", "challenge"):
        write(folder, {f"places365_train_{part}.txt": "/b/bar/2.jpg 1\n/a/airfield/1.jpg 0\n"})
        write(folder, {f"places365_train-{part}.txt": "/b/bar/2.jpg 1\n/a/airfield/1.jpg 0\n"})
        for size in ("256", "large"):
            write(
                folder, {f"data_{size}_{part}/{name}.jpg": png(n) for n, name in enumerate(("a/airfield/1", "b/bar/2"))}
            )
    write(folder, {"places365_val.txt": "Places365_val_00000002.jpg 1\nPlaces365_val_00000001.jpg 0\n"})
    for size in ("256", "large"):
        write(folder, {f"val_{size}/Places365_val_0000000{n}.jpg": png(n) for n in (1, 2)})


def phototour(folder: Path) -> None:
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (1024, 1024)).astype(np.uint8)
    palette = b"".join(bytes([n, n, n, 0]) for n in range(256))
    start = 14 + 40 + len(palette)
    head = b"BM" + struct.pack("<IHHI", start + pixels.size, 0, 0, start)
    head += struct.pack("<IiiHHIIiiII", 40, 1024, 1024, 1, 8, 0, pixels.size, 2835, 2835, 256, 0)
    names = ("liberty", "notredame", "yosemite", "liberty_harris", "notredame_harris", "yosemite_harris")
    for name in names[:1]:
        write(folder, {f"{name}/patches0000.bmp": head + palette + pixels[::-1].tobytes()})
        write(folder, {f"{name}/info.txt": "".join(f"{n // 2} 0\n" for n in range(20))})
        write(folder, {f"{name}/m50_100000_100000_0.txt": "0 0 0 1 0 0 0\n2 1 0 17 8 0 0\n"})


def sbd(folder: Path) -> None:
    from scipy.io import savemat
    from scipy.sparse import csc_matrix

    names = ("2008_000002", "2008_000003", "2008_000005")
    for n, name in enumerate(names):
        write(folder, {f"img/{name}.jpg": png(n)})
        edges = np.empty((20, 1), object)
        for k in range(20):
            edges[k, 0] = csc_matrix((np.arange(6).reshape(2, 3) % (k + 2 + n) == 0).astype(np.uint8))
        seg = (np.arange(6).reshape(2, 3) + n).astype(np.uint8)
        out = io.BytesIO()
        savemat(out, {"GTcls": {"Boundaries": edges, "Segmentation": seg, "CategoriesPresent": np.array([1])}})
        write(folder, {f"cls/{name}.mat": out.getvalue()})
    (folder / "inst").mkdir()
    write(
        folder,
        {"train.txt": f"{names[0]}\n{names[1]}\n", "val.txt": f"{names[2]}\n", "train_noval.txt": f"{names[1]}\n"},
    )


def sbu(folder: Path) -> None:
    urls = [f"http://static.flickr.com/2723/{n}_c3c{n}.jpg\n" for n in range(3)]
    write(folder, {"SBU_captioned_photo_dataset_urls.txt": "".join(urls)})
    write(folder, {"SBU_captioned_photo_dataset_captions.txt": "".join(f"A photo {n} .\n" for n in range(3))})
    write(folder, {f"sbu_images/m_2723_{n}_c3c{n}.jpg": png(n) for n in (0, 2)})


def sun397(folder: Path) -> None:
    names = ("/a/abbey", "/a/apartment_building/outdoor", "/b/bar")
    write(folder, {"ClassName.txt": "".join(f"{name}\n" for name in names)})
    for number, name in enumerate(names):
        write(folder, {f"{name[1:]}/sun_{n}.jpg": png(10 * number + n) for n in ("ab", "aa") for n in (ord(n[1]),)})


def wider_face(folder: Path) -> None:
    for part, names in (
        ("train", ("0--Parade/p1", "1--Shake/s1")),
        ("val", ("0--Parade/p2", "1--Shake/s2")),
        ("test", ("0--Parade/t1",)),
    ):
        write(folder, {f"WIDER_{part}/images/{name}.jpg": png(ord(name[-2])) for name in names})
    box = "449 330 122 149 0 0 0 0 0 0 \n"
    train = f"0--Parade/p1.jpg\n1\n{box}1--Shake/s1.jpg\n2\n78 221 7 8 2 0 1 0 1 0 \n{box}"
    write(
        folder,
        {
            "wider_face_split/wider_face_train_bbx_gt.txt": train,
            "wider_face_split/wider_face_val_bbx_gt.txt": "0--Parade/p2.jpg\n1\n1 2 3 4 1 1 1 1 1 1 \n"
            f"1--Shake/s2.jpg\n1\n{box}",
            "wider_face_split/wider_face_test_filelist.txt": "0--Parade/t1.jpg\n",
        },
    )


def idx(array: np.ndarray) -> bytes:
    code = {"uint8": 8, "int32": 12}[str(array.dtype)]
    return (
        struct.pack(">HBB", 0, code, array.ndim)
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.astype(array.dtype.newbyteorder(">")).tobytes()
    )


def emnist(folder: Path) -> None:
    random = np.random.default_rng(1)
    for name in ("letters", "mnist"):
        for part in ("train", "test"):
            images = random.integers(0, 256, (3, 28, 28)).astype(np.uint8)
            write(folder, {f"emnist-{name}-{part}-images-idx3-ubyte": idx(images)})
            labels = np.array([1, 26, len(part)], np.uint8)
            write(folder, {f"emnist-{name}-{part}-labels-idx1-ubyte": idx(labels)})


def qmnist(folder: Path) -> None:
    random = np.random.default_rng(2)
    for name, prefix, count in (("train", "qmnist-train", 2), ("test", "qmnist-test", 10003), ("nist", "xnist", 3)):
        images = random.integers(0, 256, (count, 28, 28) if count < 10 else (1, 28, 28)).astype(np.uint8)
        images = np.broadcast_to(images, (count, 28, 28))
        labels = np.zeros((count, 8), np.int32)
        labels[:, 0] = np.arange(count) % 10
        labels[:, 1:] = 1000 * len(name) + np.arange(7)
        write(folder, {f"{prefix}-images-idx3-ubyte": idx(images), f"{prefix}-labels-idx2-int": idx(labels)})


def semeion(folder: Path) -> None:
    random = np.random.default_rng(3)
    lines = []
    for n in range(3):
        digits = ["1.0000" if n == k else "0.0000" for k in (2, 1, 0)] + ["0"] * 7
        bits = [f"{bit}.0000" for bit in random.integers(0, 2, 256)]
        lines.append(" ".join([*bits, *(digit[0] for digit in digits)]) + " \n")
    write(folder, {"semeion.data": "".join(lines), "semeion.names": "names"})


def usps(folder: Path) -> None:
    random = np.random.default_rng(4)
    for name, count in (("usps", 3), ("usps.t", 2)):
        lines = []
        for n in range(count):
            values = random.uniform(-1, 1, 256).round(6)
            values[:3] = (-1, 1, 0)
            lines.append(
                " ".join([str(n + 8 if n else 1), *(f"{k + 1}:{value}" for k, value in enumerate(values))]) + " \n"
            )
        write(folder, {name: "".join(lines)})
        write(folder, {f"{name}.bz2": bz2.compress(b"not read")})


def image_cases() -> dict[str, Case]:
    """Cases of sets of images."""
    cases: dict[str, Case] = {}

    def add(kind: str, build: Callable[[Path], None], *groups: dict[str, Any], path: Any = None) -> None:
        for group in groups or ({},):
            label = " ".join([kind, *(f"{name}={value}" for name, value in group.items())])
            cases[label] = (kind, build, path, {**group, "shuffle": False})

    def usages(*values: Any) -> tuple[dict[str, Any], ...]:
        return tuple({"usage": value} for value in values)

    decoded = {"decode": True}
    add("Caltech101", caltech101, {}, {"target_type": "annotation"}, {"target_type": "all", **decoded})
    add("Caltech256", tree({"002.b/1.jpg": 1, "001.a/2.jpg": 2, "001.a/1.jpg": 3}), {}, decoded)
    for task in ("instance", "semantic", "color", "polygon"):
        add("Cityscapes", cityscapes, {"task": task}, {"task": task, **decoded})
    add("Cityscapes", cityscapes, *usages("all", "test"), {"usage": "train_extra", "quality_mode": "coarse"})
    add("DIV2K", div2k, {}, *usages("valid", "all"), {"downgrade": "unknown", "scale": 3, **decoded})
    add("DIV2K", div2k, {"scale": 8}, *({"downgrade": kind, "scale": 4} for kind in ("mild", "difficult", "wild")))
    add("Flickr", flickr, {}, decoded, path=("images", "tokens.txt"))
    add("Flowers102", flowers, *usages("all", "train", "test", "valid"), {"task": "Segmentation", **decoded})
    add("Food101", food101, *usages(None, "train", "test"), decoded)
    add("KITTI", kitti, *usages(None, "test"), decoded)
    for task in ("people", "pairs"):
        for usage in ("10fold", "train", "test", "all"):
            add("LFW", lfw, {"task": task, "usage": usage})
    add("LFW", lfw, {}, {"image_set": "original", **decoded}, {"image_set": "deepfunneled"})
    add("LSUN", lsun, *usages(None, "train", "test", "valid"), {"usage": "train", "classes": ["bedroom"], **decoded})
    add("LSUN", lsun, {"usage": "valid", "classes": ["classroom", "bedroom"]})
    add(
        "Manifest",
        manifest,
        *usages("train", "eval", "inference"),
        {"class_indexing": {"dog": 5}, **decoded},
        path="a.manifest",
    )
    add("Omniglot", omniglot, {}, {"background": False}, {"background": True, **decoded})
    add("Places365", places365, *usages(None, "train-challenge", "val"), {"small": False, **decoded})
    add("PhotoTour", phototour, {"name": "liberty"}, {"name": "liberty", "usage": "test"})
    names = [
        f"{part}/{kind}/{n}.png"
        for part in ("train", "test", "valid")
        for kind in ("negative", "positive")
        for n in (2, 1)
    ]
    add("RenderedSST2", tree({name: n for n, name in enumerate(names)}), *usages(None, "train", "val", "test"), decoded)
    add("SB", sbd, *usages("all", "train", "val", "train_noval"), {"task": "Segmentation"}, decoded)
    add("SBU", sbu, {}, decoded)
    add("SUN397", sun397, {}, decoded)
    add("WIDERFace", wider_face, *usages(None, "train", "valid", "test"), decoded)
    return cases


def digit_cases() -> dict[str, Case]:
    """Cases of sets of digits and letters."""
    cases: dict[str, Case] = {}
    for usage in (None, "train", "test"):
        cases[f"EMnist {usage}"] = ("EMnist", emnist, None, {"name": "letters", "usage": usage, "shuffle": False})
        cases[f"USPS {usage}"] = ("USPS", usps, None, {"usage": usage, "shuffle": False})
    for usage in ("train", "test10k", "nist"):
        for compat in (True, False):
            arguments = {"usage": usage, "compat": compat, "shuffle": False, "num_samples": 4}
            cases[f"QMnist {usage} {compat}"] = ("QMnist", qmnist, None, arguments)
    cases["Semeion"] = ("Semeion", semeion, None, {"shuffle": False})
    return cases
